//! Choosing among models: folds, and cross-validation along a path of penalties.

mod cross_validation;
mod folds;
mod path;
#[cfg(test)]
mod tests;

pub use cross_validation::{FoldProgress, PathPoint, cross_validate};
pub use folds::{FoldError, Folds};
