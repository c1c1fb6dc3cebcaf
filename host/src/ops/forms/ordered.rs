//! Products of a dense X whose sums have an order: chunks of rows, then their sums.

use std::sync::{Arc, Mutex};

use gpu_kernels::fused::{
    DenseArgs, DenseOrder, Product as KernelProduct, TotalArgs, TotalVariant,
};
use gpu_kernels::{Family, Launch};

use super::dense::DenseRows;
use super::site::{Call, OnDevice, Site};
use crate::device::{Buffer, Device, Prepared};
use crate::ops::blocks::Part;
use crate::ops::launch::prepare;
use crate::ops::terms::Terms;
use crate::ops::{Number, OpError};
use crate::parallel::locked;
use crate::plan::fused::Plan;

/// The launches of one product.
pub(in crate::ops) struct OrderedKernels<T: Number> {
    walk: Prepared<T::Dense>,
    totals: Totals<T>,
    /// Locked from the first launch of a product to the last.
    sums: Mutex<Buffer<T>>,
    rows: Arc<DenseRows<T>>,
}

/// The launch that adds up what chunks of rows come to.
pub(super) struct Totals<T: Number> {
    kernel: Prepared<T::DenseTotals>,
    cols: u32,
    chunks: u32,
}

impl<T: Number> Totals<T> {
    /// For sums of `cols` columns over each of `chunks` chunks.
    pub(super) fn prepare(device: &Device, cols: usize, chunks: u32) -> Result<Self, OpError> {
        let cols = cols as u32;
        let launch = Launch {
            grid: cols.div_ceil(TotalVariant::COLUMNS).max(1),
            block: TotalVariant::THREADS,
            shared_bytes: TotalVariant.shared_bytes(T::SIZE),
        };
        let kernel = device.prepare(&T::DenseTotals::entries()[0], launch)?;
        Ok(Totals {
            kernel,
            cols,
            chunks,
        })
    }

    /// `w = α · Σ sums + β·z`.
    pub(super) fn launch(
        &self,
        sums: &Buffer<T>,
        terms: &Terms<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        Ok(self.kernel.launch(TotalArgs {
            cols: self.cols,
            chunks: self.chunks,
            sums: sums.input(),
            addend: terms.addend(),
            output: w.output(),
            alpha: terms.alpha,
            beta: terms.beta(),
        })?)
    }
}

impl<T: Number> OrderedKernels<T> {
    /// The kernel that a plan names, and the one that belongs to it.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        rows: &Arc<DenseRows<T>>,
        plan: &Plan,
    ) -> Result<Self, OpError> {
        let product = KernelProduct::from(plan.product);
        let order = DenseOrder::of(product, site.rows as u64, site.cols as u64, T::SIZE);
        let chunks = order.expect("it was planned with an order").chunks;
        Ok(OrderedKernels {
            walk: prepare::<T::Dense>(&site.device, plan)?,
            totals: Totals::prepare(&site.device, site.cols, chunks)?,
            sums: Mutex::new(site.device.zeros(chunks as usize * site.cols)?),
            rows: rows.clone(),
        })
    }
}

impl<T: Number> OnDevice<T> for OrderedKernels<T> {
    fn writes_all(&self) -> bool {
        true
    }

    fn run(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        let mut sums = locked(&self.sums);
        let (terms, output) = (call.terms, call.output);
        self.rows.each(Part::All, |all| {
            let walk = Call {
                product: call.product,
                input: call.input,
                terms,
                output: &mut *sums,
                part: Part::All,
                within: None,
            };
            Ok(self.walk.launch(DenseArgs {
                chunks: self.totals.chunks,
                ..all.args(site.cols, walk)
            })?)
        })?;
        self.totals.launch(&sums, &terms, output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::candidates_of;
    use crate::plan::fused::{Planner, Precision, Problem, Product, Summation};
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
