//! The autotuner: the launches that a family could make of one problem, run, checked, and timed on a device.
//!
//! | file | what |
//! |---|---|
//! | [`Subject`] | a family's launches for one problem, which are checked against the reference before they are timed |
//! | [`Search`] | which one is next: all, a random order, or guided by predictions and by what was measured |
//! | [`Session`] | the planner's choice first, then the search, within a budget |
//! | [`Log`] | every trial as a line of JSON, which survives the process; what failed is remembered, and never tried again |
//! | [`Replayed`] | a log in the place of a device: searches are compared without one |
//! | [`QrSubject`], [`MatmulSubject`], [`FusedSubject`] | the families |
//!
//! The planner's choice is measured first, and the result is the fastest of all that were: tuning cannot lose.

mod error;
mod key;
mod log;
#[cfg(test)]
mod recorded;
mod replay;
mod search;
mod session;
mod subjects;
mod trial;

pub use error::TuneError;
pub use key::Key;
pub use log::{Log, Notice, Recording};
pub use replay::{Course, Replayed};
pub use search::{Search, SearchKind};
pub use session::{Budget, Session, Step, Tuned};
pub use subjects::{FusedSubject, MatmulSubject, QrSubject};
pub use trial::{Outcome, Point, Refusal, Subject, Trial};
