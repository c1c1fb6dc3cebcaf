//! What is wrong with labels.

use thiserror::Error;

/// Why labels name no classes.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum LabelError {
    /// A label is infinite or NaN.
    #[error("expected labels that are finite, found {value} for sample {row} (counted from 0)")]
    NotFinite {
        /// Which sample.
        row: usize,
        /// Its label.
        value: f64,
    },
    /// Numbers that are no labels: those of a regression.
    #[error(
        "unknown label type: continuous; expected labels that are whole numbers, found {value} for sample {row} (counted from 0): train a regression, or name the classes"
    )]
    Continuous {
        /// Which sample.
        row: usize,
        /// Its label.
        value: f64,
    },
    /// More classes than a 32-bit number can count.
    #[error("expected at most {max} classes, found {found}", max = u32::MAX)]
    TooMany {
        /// Different labels.
        found: usize,
    },
    /// A class that f64 does not hold, by which a model names its classes.
    #[error(
        "expected whole numbers that f64 holds, such as those up to 2^53, found {value} for a sample: number the classes with Codes::of, and fit their codes"
    )]
    TooLong {
        /// The label.
        value: String,
    },
    /// A label that was not among those that a model was trained on.
    #[error(
        "expected one of the labels {known}, found {label} for sample {row} (counted from 0); a model knows the classes that it was trained on"
    )]
    Unknown {
        /// Which sample.
        row: usize,
        /// Its label.
        label: String,
        /// The classes, shortened.
        known: String,
    },
    /// Numbers where a model has names, or the reverse.
    #[error("expected labels that are {expected}, as in training, found {found}")]
    Kind {
        /// What the classes are.
        expected: &'static str,
        /// What the labels are.
        found: &'static str,
    },
}
