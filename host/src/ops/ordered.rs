//! Products of a dense X whose sums have an order, on a GPU: chunks of rows, then their sums.

use std::sync::{Mutex, PoisonError};

use gpu_kernels::fused::{
    DenseArgs, DenseOrder, Product as KernelProduct, TotalArgs, TotalVariant,
};
use gpu_kernels::{Family, In, Launch};

use super::fused::{Terms, prepare};
use super::layout::Layout;
use super::{Matrix, Number, OpError};
use crate::device::{Buffer, Prepared};
use crate::plan::fused::{Plan, Product};

/// The launches of one product.
pub(super) struct OrderedKernels<T: Number> {
    walk: Prepared<T::Dense>,
    total: Prepared<T::DenseTotals>,
    chunks: u32,
    /// Locked from the first launch of a product to the last.
    sums: Mutex<Buffer<T>>,
}

impl<T: Number> OrderedKernels<T> {
    /// The kernel that a plan names, and the one that belongs to it.
    pub(super) fn prepare(matrix: &Matrix<T>, plan: &Plan) -> Result<Self, OpError> {
        let device = matrix.device();
        let (rows, cols) = (matrix.rows() as u64, matrix.cols() as u64);
        let product = KernelProduct::from(plan.product);
        let order = DenseOrder::of(product, rows, cols, T::SIZE);
        let chunks = order.expect("it was planned with an order").chunks;
        let launch = Launch {
            grid: (matrix.cols() as u32)
                .div_ceil(TotalVariant::COLUMNS)
                .max(1),
            block: TotalVariant::THREADS,
            shared_bytes: TotalVariant.shared_bytes(T::SIZE),
        };
        let total = &T::DenseTotals::entries()[0];
        Ok(OrderedKernels {
            walk: prepare::<T::Dense>(device, plan)?,
            total: device.prepare(total, launch)?,
            chunks,
            sums: Mutex::new(device.zeros(chunks as usize * matrix.cols())?),
        })
    }
}

impl<T: Number> Matrix<T> {
    /// One product; shapes and devices have been checked, and there are rows and columns.
    pub(super) fn in_order(
        &self,
        kernels: &OrderedKernels<T>,
        product: Product,
        input: &Buffer<T>,
        terms: &Terms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let Layout::Dense(part) = &self.layout else {
            unreachable!("an order of chunks is planned for dense matrices alone")
        };
        let mut sums = kernels.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let x = self.dense_args(part, product, input, terms, &mut sums);
        let chunks = kernels.chunks;
        kernels.walk.launch(DenseArgs { chunks, ..x })?;
        Ok(kernels.total.launch(TotalArgs {
            cols: self.cols() as u32,
            chunks,
            sums: sums.input(),
            addend: terms.addend.map_or(In::none(), |(_, z)| z.input()),
            output: output.output(),
            alpha: terms.alpha,
            beta: terms.addend.map_or(T::ZERO, |(beta, _)| beta),
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::candidates_of;
    use crate::plan::fused::{Planner, Precision, Problem, Summation};
    use crate::plan::limits::DeviceLimits;

    #[test]
    fn sums_in_order_take_the_whole_device_and_hardly_longer() {
        let limits = DeviceLimits::known("h200").expect("it is known");
        let wide = [100, 128, 500, 1_024, 2_048, 4_096, 6_000, 10_000, 32_768];
        for cols in (1..=36).chain(wide) {
            for dtype in [Precision::F32, Precision::F64] {
                let kernels = candidates_of(dtype, "sm_90");
                let problem = Problem::dense(1_000_000_000 / cols, cols, dtype).as_stored();
                for product in [Product::Fused, Product::Transposed] {
                    let plan = |summation| {
                        let planner = Planner::new(&limits, &kernels).summation(summation);
                        planner.plan(&problem, product).expect("a plan")
                    };
                    let (free, ordered) = (plan(Summation::Free), plan(Summation::Reproducible));
                    let us = |plan: &Plan| plan.predicted_us().expect("a prediction");
                    // Rows that a cluster alone holds have no order, and are read twice.
                    let most = if ordered.then.is_some() { 2.0 } else { 1.06 };
                    assert!(
                        us(&ordered) <= most * us(&free),
                        "{problem}, {product}: {ordered}\nbut\n{free}"
                    );
                }
            }
        }
    }
}
