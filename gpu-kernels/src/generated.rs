//! Instances of templates beyond the tables: none. The builder's `Instances` writes this file anew in a copy of the crate, a row of
//! `table::instances!` for the instance that a tuner wants to try.
