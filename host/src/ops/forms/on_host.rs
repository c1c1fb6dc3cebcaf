//! Dense rows that stream, with sums in an order: computed by the CPU, which adds in the same order.
//!
//! The order of sums ([`gpu_kernels::fused::dense_order`]) runs through all rows with a stride, so that its sums cannot be
//! taken up again from block to block. The host has X, and reads it two to four times as fast as the link carries it; vectors
//! cross instead.

use std::sync::Arc;

use super::dense::DenseRows;
use super::site::{Call, OnDevice, Site};
use crate::device::{Buffer, Device};
use crate::ops::host::HostRows;
use crate::ops::terms::Terms;
use crate::ops::{Number, OpError};
use crate::plan::fused::{Product, Summation};

/// The CPU's rows.
pub(super) struct OnHost<T: Number> {
    rows: HostRows<T>,
    cpu: Device,
}

impl<T: Number> OnHost<T> {
    /// Those of rows that stream.
    pub(super) fn new(rows: &Arc<DenseRows<T>>) -> Self {
        let stream = rows.streamed().expect("rows that stream");
        OnHost {
            rows: HostRows::new(stream.blocks().source().clone()),
            cpu: Device::cpu(),
        }
    }

    fn fetch(&self, vector: &Buffer<T>) -> Result<Buffer<T>, OpError> {
        let mut copy = self.cpu.zeros(vector.len())?;
        let values = copy.as_host_slice_mut().expect("a vector of the CPU");
        vector.copy_to_slice(values)?;
        Ok(copy)
    }
}

impl<T: Number> OnDevice<T> for OnHost<T> {
    fn writes_all(&self) -> bool {
        true
    }

    fn run(&self, _: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        debug_assert!(call.product != Product::Forward, "its rows have no order");
        let terms = call.terms;
        let fetch = |vector: Option<&Buffer<T>>| vector.map(|v| self.fetch(v)).transpose();
        let (weights, shift) = (fetch(terms.weights)?, fetch(terms.shift)?);
        let z = fetch(terms.addend.map(|(_, z)| z))?;
        let on_host = Terms {
            alpha: terms.alpha,
            weights: weights.as_ref(),
            shift: shift.as_ref(),
            addend: terms.addend.map(|(beta, _)| beta).zip(z.as_ref()),
        };
        let input = self.fetch(call.input)?;
        let mut output = self.cpu.zeros(call.output.len())?;
        let what = (call.product, Summation::Reproducible);
        self.rows.product(what, &input, &on_host, &mut output)?;
        let found = output.as_host_slice().expect("a vector of the CPU");
        Ok(call.output.copy_from_slice(found)?)
    }
}
