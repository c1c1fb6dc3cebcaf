//! Choosing among models: folds, and cross-validation along a path of penalties.

mod cross_validation;
mod folds;
mod held_out;
mod path;
mod points;
#[cfg(test)]
mod tests;
mod together;

pub use cross_validation::{FoldOptions, cross_validate, cross_validate_with};
pub use folds::{FoldError, Folds};
pub use points::{FoldProgress, PathPoint};
