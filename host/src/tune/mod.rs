//! The autotuner: the launches that a family could make of one problem, run, checked, and timed on a device.
//!
//! | file | what |
//! |---|---|
//! | [`Subject`] | a family's launches for one problem, which are checked against the reference before they are timed |
//! | [`Search`] | which one is next: all, a random order, guided by predictions and by what was measured, or children of the fastest |
//! | [`Session`] | the planner's choice first, then the search, within a budget |
//! | [`Log`] | every trial as a line of JSON, which survives the process; what failed is remembered, and never tried again; several processes may share one |
//! | [`Generator`] | kernels that no table has, compiled from their templates |
//! | [`Replayed`] | a log instead of a device: searches are compared without one |
//! | [`QrSubject`], [`MatmulSubject`], [`FusedSubject`], [`ReduceSubject`], [`Conv1dSubject`], [`KernelSumSubject`], [`SparseConvSubject`] | the families |
//!
//! The [`guide`] says how to use it, and how tables of what was tuned reach planners.
//!
//! The planner's choice is measured first, and the result is the fastest of all that were: tuning cannot lose.

#[doc = include_str!("guide.md")]
pub mod guide {}

mod error;
mod evolution;
mod generator;
mod key;
#[cfg(test)]
mod killed;
mod log;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod recorded;
mod replay;
mod search;
mod session;
mod space;
mod subjects;
mod table;
mod trial;

pub use crate::plan::tuned::Key;
pub use error::TuneError;
pub use generator::Generator;
pub use log::{Log, Notice, Recording, UnderWay};
pub use replay::{Course, Replayed};
pub use search::{Search, SearchKind};
pub use session::{Budget, Session, Step, Tuned};
pub use subjects::{
    Conv1dSubject, FusedSubject, KernelSumSize, KernelSumSubject, MatmulSubject, QrSubject,
    ReduceSubject, SparseConvSubject,
};
pub use trial::{Outcome, Point, Refusal, Subject, Trial};
