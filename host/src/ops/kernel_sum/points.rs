//! Kernels with their length scales, and points as the bodies want them.

use std::ops::Range;

use gpu_kernels::kernel_sum::{KernelFunction, MAX_POINTS};
use ndarray::ArrayView2;

use super::super::{Number, OpError};
use crate::cpu::kernel_sum as cpu;
use crate::device::{Buffer, Device};
use crate::matrix::Element;
use crate::plan::kernel_sum::Extent;

/// A kernel function with its length scale ℓ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kernel {
    function: KernelFunction,
    length_scale: f64,
}

impl Kernel {
    /// `function` with length scale ℓ.
    ///
    /// # Errors
    /// [`OpError::Parameter`] unless ℓ is finite and above zero.
    pub fn new(function: KernelFunction, length_scale: f64) -> Result<Kernel, OpError> {
        if !(length_scale > 0.0 && length_scale.is_finite()) {
            return Err(OpError::Parameter {
                name: "length scale",
                expected: "finite and above zero",
                found: length_scale,
            });
        }
        Ok(Kernel {
            function,
            length_scale,
        })
    }

    /// k.
    pub fn function(&self) -> KernelFunction {
        self.function
    }

    /// ℓ.
    pub fn length_scale(&self) -> f64 {
        self.length_scale
    }

    /// What coordinates are multiplied with before they enter [`KernelFunction::value`] or reach a device.
    pub fn scale(&self) -> f64 {
        self.function.scale() / self.length_scale
    }
}

/// Points on a device: coordinate by coordinate, centred and scaled.
#[derive(Debug)]
pub(super) struct Points<T: Number> {
    pub coordinates: Buffer<T>,
    pub len: usize,
    pub extent: Extent,
}

impl<T: Number> Points<T> {
    /// Centres and scales in f64, rounds once.
    pub fn new(
        device: &Device,
        kernel: Kernel,
        points: ArrayView2<'_, T>,
        centre: &[f64],
        what: &'static str,
    ) -> Result<Points<T>, OpError> {
        let len = points.nrows();
        if len as u64 > u64::from(MAX_POINTS) {
            return Err(OpError::TooLarge {
                what,
                limit: u64::from(MAX_POINTS),
                found: len as u64,
            });
        }
        if let Some(((point, _), value)) = points
            .indexed_iter()
            .find(|(_, value)| !Element::is_finite(**value))
        {
            return Err(OpError::NotFinite {
                what,
                index: point,
                value: Element::to_f64(*value),
            });
        }
        let scale = kernel.scale();
        let columns = points.columns().into_iter().zip(centre);
        let coordinates: Vec<T> = columns
            .flat_map(|(column, centre)| {
                let scaled = move |value: &T| (Element::to_f64(*value) - centre) * scale;
                column
                    .into_iter()
                    .map(move |value| <T as Element>::from_f64(scaled(value)))
            })
            .collect();
        Ok(Points {
            extent: extent(&coordinates, len),
            coordinates: device.upload(&coordinates)?,
            len,
        })
    }

    /// Some of them, copied on the device.
    pub fn part(&self, device: &Device, range: &Range<usize>) -> Result<Points<T>, OpError> {
        let dims = self.coordinates.len().checked_div(self.len).unwrap_or(0);
        let mut coordinates = device.zeros(dims * range.len())?;
        for d in (0..dims).filter(|_| !range.is_empty()) {
            let first = d * self.len;
            let along = self
                .coordinates
                .copy_of(&(first + range.start..first + range.end))?;
            coordinates.put(d * range.len(), &along)?;
        }
        Ok(Points {
            coordinates,
            len: range.len(),
            extent: self.extent,
        })
    }

    /// On the CPU device.
    pub fn on_host(&self) -> cpu::Points<'_, T> {
        cpu::Points {
            coordinates: host(&self.coordinates),
            len: self.len,
        }
    }
}

/// How far out `len` points are, of which coordinates of one dimension lie one after the other.
fn extent<T: Number>(coordinates: &[T], len: usize) -> Extent {
    let mut squares = vec![0.0; len];
    for dimension in coordinates.chunks_exact(len.max(1)) {
        for (square, value) in squares.iter_mut().zip(dimension) {
            *square += Element::to_f64(*value).powi(2);
        }
    }
    Extent::of(squares.into_iter().fold(0.0, f64::max))
}

/// The mean of the points: differences of coordinates near zero lose least to rounding.
pub(super) fn centre<T: Number>(points: ArrayView2<'_, T>) -> Vec<f64> {
    let rows = points.nrows().max(1) as f64;
    let columns = points.columns().into_iter();
    let mean = |column: ndarray::ArrayView1<'_, T>| {
        column
            .iter()
            .map(|value| Element::to_f64(*value) / rows)
            .sum()
    };
    columns.map(mean).collect()
}

const ON_HOST: &str = "buffers of the CPU device are host memory";

pub(super) fn host<T: Number>(buffer: &Buffer<T>) -> &[T] {
    buffer.as_host_slice().expect(ON_HOST)
}

pub(super) fn host_mut<T: Number>(buffer: &mut Buffer<T>) -> &mut [T] {
    buffer.as_host_slice_mut().expect(ON_HOST)
}
