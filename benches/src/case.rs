//! Names of cases.

use std::fmt;

use serde::Serialize;
use warpfuse::matrix::Dtype;

use crate::shape::Shape;

/// The seed of every recorded case.
pub const SEED: u64 = 1;

/// What a case computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// The type of a matrix.
    Float(Dtype),
    /// Another type, by its name.
    Named(&'static str),
}

impl From<Dtype> for Numbers {
    fn from(dtype: Dtype) -> Numbers {
        Numbers::Float(dtype)
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Numbers::Float(dtype) => dtype.fmt(f),
            Numbers::Named(name) => f.write_str(name),
        }
    }
}

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
    pub dtype: Numbers,
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
