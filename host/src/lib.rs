//! Fused linear-algebra patterns on NVIDIA GPUs and CPUs, and learning on top of them.
//!
//! The heart is `w = α · Xᵀ( v ⊙ (X·y) ) + β · z` with X sparse (CSR) or dense, computed while X is
//! read **once**. Rooms, and the one direction in which they may use each other:
//!
//! `io → matrix → plan → layout, device → ops → learning → report → cli`
//!
//! | room | what lives there |
//! |---|---|
//! | [`matrix`] | CSR and dense matrices at the border, statistics |
//! | [`io`] | LIBSVM, Matrix Market, npy, the binary cache, synthetic data |
//! | [`mod@reference`] | f64 loops: the truth for tests |
//! | [`plan`] | device limits, occupancy, launch models: pure functions |
//! | [`layout`] | host arrays of the forms in which a GPU stores a sparse X |
//! | [`device`] | driver loader, streams, buffers, prepared launches |
//! | [`cpu`] | the bodies of the CPU device: slices in, slices out |
//! | [`ops`] | one safe operation per kernel family |
//! | `process` | what the operating system lets the process have |
//! | [`learning`] | solvers and estimators over an abstract operator |
//! | [`tune`] | launches run, checked and timed: the autotuner |
//! | [`report`] | what a run found, as pages and figures |
//!
//! The [`glossary`] explains the words.

pub mod cpu;
pub mod device;
pub mod io;
pub mod layout;
pub mod learning;
mod mapped;
pub mod matrix;
pub mod ops;
mod parallel;
pub mod plan;
mod process;
pub mod reference;
pub mod report;
pub mod tune;
mod unfinished;
mod whole;

#[cfg(feature = "cli")]
pub mod cli;

#[doc = include_str!("glossary.md")]
pub mod glossary {}

/// The examples of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
