//! Choosing among models: folds, and cross-validation along a path of penalties.

mod cross_validation;
mod folds;
mod held_out;
mod path;
#[cfg(test)]
mod tests;

pub use cross_validation::{
    FoldOptions, FoldProgress, PathPoint, cross_validate, cross_validate_with,
};
pub use folds::{FoldError, Folds};
