//! Choosing among models: folds for cross-validation.

mod folds;

pub use folds::{FoldError, Folds};
