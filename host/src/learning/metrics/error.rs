//! Why a metric has no value.

use thiserror::Error;

/// Why a metric cannot be computed.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum MetricError {
    /// No samples.
    #[error("expected at least one sample to score, found none")]
    NoSamples,
    /// Two lists do not belong together.
    #[error("expected {expected} {what}, one for each target, found {found}")]
    Length {
        /// What there is too much or too little of.
        what: &'static str,
        /// Samples.
        expected: usize,
        /// Length given.
        found: usize,
    },
    /// A sample weight is negative, infinite or NaN.
    #[error(
        "expected sample weights that are finite and not negative, found {value} for sample {row} (counted from 0)"
    )]
    Weight {
        /// Which sample.
        row: usize,
        /// Its weight.
        value: f64,
    },
    /// All sample weights are 0.
    #[error("expected a sample weight above 0, found none")]
    NoWeight,
    /// A value that the metric is not defined for.
    #[error("expected {what} {expected}, found {value} for sample {row} (counted from 0)")]
    Domain {
        /// Targets, predictions or scores.
        what: &'static str,
        /// What is allowed.
        expected: &'static str,
        /// Which sample.
        row: usize,
        /// Its value.
        value: f64,
    },
    /// A class beyond those that there are.
    #[error(
        "expected classes below {classes}, found class {class} for sample {row} (counted from 0)"
    )]
    Class {
        /// Which sample.
        row: usize,
        /// Its class.
        class: u32,
        /// Number of classes.
        classes: usize,
    },
    /// A ranking needs samples of two classes.
    #[error("expected samples of both classes to rank, found those of one only")]
    OneClass,
    /// No Tweedie deviance has this power.
    #[error("expected a power at most 0 or at least 1, found {0}")]
    Power(f64),
}
