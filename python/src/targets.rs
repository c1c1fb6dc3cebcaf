//! y as NumPy has it: numbers of either precision, or codes of classes.

use std::borrow::Cow;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rayon::prelude::*;
use warpfuse::learning::Classes;
use warpfuse::matrix::{Dtype, Element};

use crate::arrays::{self, Scalar};

/// A contiguous vector of NumPy, borrowed.
pub enum Given<'py> {
    /// Numbers in f32.
    F32(PyReadonlyArray1<'py, f32>),
    /// Numbers in f64.
    F64(PyReadonlyArray1<'py, f64>),
    /// Codes of classes, from 0 on.
    Codes(PyReadonlyArray1<'py, u32>),
}

/// The elements of such a vector.
#[derive(Clone, Copy)]
pub enum Y<'a> {
    /// Numbers in f32.
    F32(&'a [f32]),
    /// Numbers in f64.
    F64(&'a [f64]),
    /// Codes of classes, from 0 on.
    Codes(&'a [u32]),
}

impl<'py> Given<'py> {
    /// The vector that `y` is.
    ///
    /// # Errors
    /// `TypeError` where it is none of this kind.
    pub fn of(y: &Bound<'py, PyAny>) -> PyResult<Self> {
        let given = if let Ok(y) = y.extract() {
            Given::F64(y)
        } else if let Ok(y) = y.extract() {
            Given::F32(y)
        } else if let Ok(y) = y.extract() {
            Given::Codes(y)
        } else {
            return Err(PyTypeError::new_err(
                "y must be a vector of float32 or float64, or class codes of uint32",
            ));
        };
        Ok(given)
    }

    /// Its elements.
    ///
    /// # Errors
    /// `TypeError` where they do not lie one after the other.
    pub fn elements(&self) -> PyResult<Y<'_>> {
        Ok(match self {
            Given::F32(y) => Y::F32(y.as_slice()?),
            Given::F64(y) => Y::F64(y.as_slice()?),
            Given::Codes(y) => Y::Codes(y.as_slice()?),
        })
    }
}

/// Targets of a fit: numbers in the precision of X, or classes with the code of each row.
pub enum FitTargets<'a, T: Clone> {
    /// Of a regression.
    Numbers(Cow<'a, [T]>),
    /// Of a classifier, whose classes are their own codes.
    Codes(Classes, &'a [u32]),
}

impl<'a> Y<'a> {
    /// As a fit takes them; numbers in the precision of X are not copied.
    pub fn targets<T: Scalar>(self) -> FitTargets<'a, T> {
        FitTargets::Numbers(match (self, T::DTYPE) {
            (Y::Codes(codes), _) => {
                // Each class has a row.
                let most = codes.par_iter().copied().max().unwrap_or(0);
                let classes = (0..=most).map(f64::from).collect();
                return FitTargets::Codes(Classes::Numbers(classes), codes);
            }
            (Y::F32(y), Dtype::F32) => Cow::Borrowed(bytemuck::cast_slice(y)),
            (Y::F64(y), Dtype::F64) => Cow::Borrowed(bytemuck::cast_slice(y)),
            (Y::F32(y), Dtype::F64) => {
                let wide = |b: &f32| <T as Element>::from_f64(f64::from(*b));
                Cow::Owned(y.par_iter().map(wide).collect())
            }
            (Y::F64(y), Dtype::F32) => Cow::Owned(arrays::narrow(y)),
        })
    }
}
