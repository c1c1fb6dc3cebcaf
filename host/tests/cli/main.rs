//! The program from outside: what it prints, where, and how it ends.
#![cfg(feature = "cli")]

mod arrays;
mod bad_files;
mod beside;
mod checkpoints;
mod emulate;
mod estimators;
mod examples;
mod inspect;
mod kernel_ridge;
mod limits;
mod outputs;
mod plan;
mod predict;
mod program;
mod promises;
mod report;
mod snapshots;
mod spectral;
mod synth;
mod tables;
mod train;
mod tune;
mod usage;
