//! y as NumPy has it: numbers of either precision, or codes of classes.

use std::borrow::Cow;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rayon::prelude::*;
use warpfuse::learning::{Classes, Codes};
use warpfuse::matrix::{Dtype, Element};

use crate::arrays::Scalar;

/// A contiguous vector of NumPy, borrowed.
pub enum Given<'py> {
    /// Numbers in f32.
    F32(PyReadonlyArray1<'py, f32>),
    /// Numbers in f64.
    F64(PyReadonlyArray1<'py, f64>),
    /// Codes of classes, from 0 on.
    Codes(PyReadonlyArray1<'py, u32>),
    /// Codes of at most 256 classes.
    ShortCodes(PyReadonlyArray1<'py, u8>),
    /// Codes that the library has given labels.
    Encoded(Codes<'static>),
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
    /// Codes of at most 256 classes.
    ShortCodes(&'a [u8]),
}

impl<'a> From<&'a Codes<'_>> for Y<'a> {
    fn from(codes: &'a Codes<'_>) -> Self {
        match codes {
            Codes::Bytes(codes) => Y::ShortCodes(codes),
            Codes::Words(codes) => Y::Codes(codes),
        }
    }
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
            Given::ShortCodes(y)
        } else if let Ok(y) = y.extract() {
            Given::Codes(y)
        } else {
            return Err(PyTypeError::new_err(
                "y must be a vector of float32 or float64, or class codes of uint8 or uint32",
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
            Given::ShortCodes(y) => Y::ShortCodes(y.as_slice()?),
            Given::Encoded(codes) => codes.into(),
        })
    }
}

/// Targets of a fit: numbers in the precision of X, or classes with the code of each row.
pub enum FitTargets<'a, T: Clone> {
    /// Of a regression.
    Numbers(Cow<'a, [T]>),
    /// Of a regression, in f64 where X is in f32.
    Wide(&'a [f64]),
    /// Of a classifier, whose classes are their own codes.
    Codes(Classes, Codes<'a>),
}

impl<'a> Y<'a> {
    /// As a fit takes them; numbers in the precision of X are not copied.
    pub fn targets<T: Scalar>(self) -> FitTargets<'a, T> {
        FitTargets::Numbers(match (self, T::DTYPE) {
            (Y::Codes(codes), _) => return coded(codes),
            (Y::ShortCodes(codes), _) => return coded(codes),
            (Y::F32(y), Dtype::F32) => Cow::Borrowed(bytemuck::cast_slice(y)),
            (Y::F64(y), Dtype::F64) => Cow::Borrowed(bytemuck::cast_slice(y)),
            (Y::F32(y), Dtype::F64) => {
                let wide = |b: &f32| <T as Element>::from_f64(f64::from(*b));
                Cow::Owned(y.par_iter().map(wide).collect())
            }
            (Y::F64(y), Dtype::F32) => return FitTargets::Wide(y),
        })
    }
}

/// Codes with the classes that they number, each of which has a row.
fn coded<'a, T: Clone>(codes: impl Into<Codes<'a>>) -> FitTargets<'a, T> {
    let codes = codes.into();
    let classes = codes.most().map_or(0, |most| most + 1);
    let classes = (0..classes).map(f64::from).collect();
    FitTargets::Codes(Classes::Numbers(classes), codes)
}
