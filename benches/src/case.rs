//! Names of cases.

use std::fmt;

use serde::Serialize;
use warpfuse::matrix::Dtype;

use crate::shape::Shape;

/// The seed of every recorded case.
pub const SEED: u64 = 1;

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Case {
    /// The family, and the name of the file of results.
    #[serde(skip)]
    pub family: &'static str,
    /// What is computed.
    pub work: &'static str,
    /// Over what.
    #[serde(flatten)]
    pub shape: Shape,
    /// The element type.
    #[serde(skip)]
    pub dtype: Dtype,
    /// The seed of the values.
    pub seed: u64,
}

/// Such as `fused/dense-11000000x28/f32/forward`: what filters are compared with.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}/{}/{}",
            self.family, self.shape, self.dtype, self.work
        )
    }
}
