//! The kernel of losses of rows.

use std::sync::Mutex;

use gpu_kernels::objective::{
    ObjectiveArgs, Products, RowArgs, RowObjectiveVariant, in_order_bytes, scratch_bytes,
};
use gpu_kernels::{Family, In, Out};

use super::super::vector::launch_of;
use super::super::{Number, OpError};
use crate::cpu::grid::Grid;
use crate::device::{Buffer, Device, Prepared};
use crate::parallel::locked;
use crate::plan::fused::Summation;

/// The kernel of losses of rows whose products are known, and what sums that are to repeat pass through.
pub(super) struct RowKernel<T: Number> {
    kernel: Prepared<T::RowObjective>,
    between: Option<Mutex<(Buffer<f64>, Buffer<u32>)>>,
}

impl<T: Number> RowKernel<T> {
    /// For `rows` rows.
    pub(super) fn new(device: &Device, rows: usize, summation: Summation) -> Result<Self, OpError> {
        let (variant, bytes, grid): (_, fn(u32) -> u64, _) = match summation {
            Summation::Free => (RowObjectiveVariant::Atomic, scratch_bytes, Grid::wide(rows)),
            Summation::Reproducible => {
                (RowObjectiveVariant::InOrder, in_order_bytes, Grid::of(rows))
            }
        };
        let entries = T::RowObjective::entries();
        let entry = entries.iter().find(|entry| entry.variant == variant);
        let launch = launch_of(grid, bytes);
        let between = match summation {
            Summation::Free => None,
            Summation::Reproducible => {
                let partials = device.zeros(3 * grid.blocks)?;
                Some(Mutex::new((partials, device.zeros(1)?)))
            }
        };
        Ok(RowKernel {
            kernel: device.prepare(entry.expect("the table has both kernels"), launch)?,
            between,
        })
    }

    /// Of as many rows as there are `products`.
    pub(super) fn launch(&self, products: In<'_, T>, rows: RowArgs<'_, T>) -> Result<(), OpError> {
        let mut between = self.between.as_ref().map(locked);
        let (partials, counter) = match between.as_deref_mut() {
            Some((partials, counter)) => (partials.output(), counter.output()),
            None => (Out::none(), Out::none()),
        };
        let x = Products {
            rows: products.len(),
            products,
            partials,
            counter,
        };
        Ok(self.kernel.launch(ObjectiveArgs { x, rows })?)
    }
}
