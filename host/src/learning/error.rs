//! What can go wrong in learning.

use std::path::PathBuf;

use thiserror::Error;

use crate::matrix::TooLargeError;
use crate::ops::OpError;

/// Why a model was not fitted or applied.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum FitError {
    /// No samples.
    #[error("the data have no rows; at least one sample is needed")]
    NoRows,
    /// Features and targets do not belong together.
    #[error("there are {rows} rows but {targets} targets; each row needs one")]
    Targets {
        /// Rows of X.
        rows: usize,
        /// Targets given.
        targets: usize,
    },
    /// A target is infinite or NaN.
    #[error("target {row} (counted from 0) is {value}; targets must be finite")]
    TargetNotFinite {
        /// Which target.
        row: usize,
        /// Its value.
        value: f64,
    },
    /// A column holds an infinite or NaN value, or values whose squares overflow.
    #[error(
        "column {column} (counted from 0) has values that are not finite or too large to square; clean or rescale it"
    )]
    ColumnNotFinite {
        /// Which column.
        column: usize,
    },
    /// Sparse features for an estimator that needs dense ones.
    #[error(transparent)]
    TooLarge(#[from] TooLargeError),
    /// A parameter is out of its range.
    #[error("{name} must be {expected}, but is {found}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// What is allowed.
        expected: &'static str,
        /// What was given.
        found: f64,
    },
    /// A list has another length than the data ask for.
    #[error("expected {expected} {what}, found {found}")]
    Length {
        /// What is listed.
        what: &'static str,
        /// The length that fits.
        expected: usize,
        /// The length that it has.
        found: usize,
    },
    /// Labels that name no classes, or too few.
    #[error(transparent)]
    Labels(#[from] super::LabelError),
    /// A classifier needs two classes at least.
    #[error("expected at least 2 classes, found {found}; a classifier has nothing to tell apart")]
    Classes {
        /// Classes that occur.
        found: usize,
    },
    /// A target that the distribution of a generalised linear model cannot have.
    #[error("target {row} (counted from 0) is {value}, which {distribution} targets cannot be")]
    TargetOutside {
        /// Which target.
        row: usize,
        /// Its value.
        value: f64,
        /// The distribution.
        distribution: String,
    },
    /// A score could not be computed.
    #[error(transparent)]
    Metric(#[from] super::metrics::MetricError),
    /// Two parameters that exclude each other.
    #[error("{first} cannot be combined with {second}; {remedy}")]
    Combination {
        /// One.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// The iteration broke down.
    #[error(
        "the iteration broke down after {iterations} steps: a value became infinite or NaN; rescale features and targets, or use f64 where they are f32"
    )]
    NotFinite {
        /// Iterations done.
        iterations: usize,
    },
    /// The data have another number of features than the model.
    #[error("the model has {expected} features, but the data have {found}")]
    Features {
        /// Features of the model.
        expected: usize,
        /// Columns of the data.
        found: usize,
    },
    /// A group of rows that could not be fitted, of which something was to be predicted.
    #[error("group {group} has no model: {reason}")]
    Group {
        /// Its label.
        group: String,
        /// Why.
        reason: String,
    },
    /// An edge of a graph is negative, infinite or NaN.
    #[error(
        "an edge of node {row} (counted from 0) weighs {value}; edges must be finite and not negative"
    )]
    Edge {
        /// The node that it leaves.
        row: usize,
        /// Its weight.
        value: f64,
    },
    /// A graph without edges has no ranking.
    #[error("the graph has no edges; at least one is needed")]
    NoEdges,
    /// The adjacency matrix of a graph has a row and a column per node.
    #[error("the graph has {rows} rows and {cols} columns; both must be the number of nodes")]
    NotSquare {
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
    },
    /// A checkpoint could not be read, or is of another fit.
    #[error(transparent)]
    Checkpoint(#[from] super::CheckpointError),
    /// An operation failed.
    #[error(transparent)]
    Op(#[from] OpError),
}

/// Two things that exclude each other.
pub(super) fn mismatch(
    first: &'static str,
    second: &'static str,
    remedy: &'static str,
) -> FitError {
    FitError::Combination {
        first,
        second,
        remedy,
    }
}

impl From<crate::device::DeviceError> for FitError {
    fn from(error: crate::device::DeviceError) -> Self {
        FitError::Op(error.into())
    }
}

/// Why a model file was not written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The file system refused.
    #[error("cannot {action} model file {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Not a model file of ours.
    #[error("{} is not a warpfuse model: {reason}", path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}
