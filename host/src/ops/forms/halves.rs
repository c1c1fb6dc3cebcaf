//! `X·y` and `Xᵀ·p` of each block while it is on the device: what streams crosses the link once for both.

use std::ops::Range;
use std::sync::Arc;

use gpu_kernels::fused::SparseArgs;

use super::dense::DenseRows;
use super::even::EvenLaunch;
use super::rows::SparseRows;
use super::site::{Call, OnDevice, Site};
use crate::device::Prepared;
use crate::layout::frequent::FrequentTable;
use crate::ops::blocks::{DenseBlock, Part, SparseBlock};
use crate::ops::launch::prepare;
use crate::ops::{Number, OpError};
use crate::plan::fused::{Plan, Product};

/// One kernel for each of the two products, that adds without anything before or after.
pub(in crate::ops) enum Halves<T: Number> {
    /// Of sparse rows.
    Sparse([SparseHalf<T>; 2], Arc<SparseRows<T>>),
    /// Of dense ones.
    Dense([Prepared<T::Dense>; 2], Arc<DenseRows<T>>),
}

/// A product of sparse rows.
pub(in crate::ops) enum SparseHalf<T: Number> {
    /// A vector of threads for each row.
    OfRows(Prepared<T::Sparse>),
    /// An even share of the entries for each warp.
    OfShares(Box<EvenLaunch<T>>),
}

/// A block of rows that is on the device.
pub(in crate::ops) enum OneBlock<'a, T: Number> {
    /// Of sparse rows.
    Sparse(&'a [SparseHalf<T>; 2], SparseBlock<'a, T>),
    /// Of dense ones.
    Dense(&'a [Prepared<T::Dense>; 2], DenseBlock<'a, T>),
}

impl<T: Number> SparseHalf<T> {
    /// The kernel that a plan names, with the frequent columns where they are known.
    fn prepare(
        site: &Site<T>,
        frequent: Option<&FrequentTable>,
        plan: &Plan,
    ) -> Result<Self, OpError> {
        Ok(match plan.strategy.is_even() {
            true => SparseHalf::OfShares(Box::new(EvenLaunch::prepare(site, frequent, plan)?)),
            false => SparseHalf::OfRows(prepare::<T::Sparse>(&site.device, plan)?),
        })
    }

    fn launch(&self, x: SparseArgs<'_, T>) -> Result<(), OpError> {
        match self {
            SparseHalf::OfRows(kernel) => Ok(kernel.launch(x)?),
            SparseHalf::OfShares(kernel) => kernel.launch(x),
        }
    }
}

impl<T: Number> Halves<T> {
    /// The kernels that two plans name.
    pub(in crate::ops) fn sparse(
        site: &Site<T>,
        (rows, frequent): (&Arc<SparseRows<T>>, Option<&FrequentTable>),
        [forward, transposed]: [&Plan; 2],
    ) -> Result<Self, OpError> {
        let half = |plan| SparseHalf::prepare(site, frequent, plan);
        let halves = [half(forward)?, half(transposed)?];
        Ok(Halves::Sparse(halves, rows.clone()))
    }

    /// The kernels that two plans name.
    pub(in crate::ops) fn dense(
        site: &Site<T>,
        rows: &Arc<DenseRows<T>>,
        [forward, transposed]: [&Plan; 2],
    ) -> Result<Self, OpError> {
        let kernel = |plan| prepare::<T::Dense>(&site.device, plan);
        let kernels = [kernel(forward)?, kernel(transposed)?];
        Ok(Halves::Dense(kernels, rows.clone()))
    }

    /// Walks over the blocks of a part.
    pub(in crate::ops) fn each(
        &self,
        part: Part,
        mut walk: impl FnMut(OneBlock<'_, T>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        match self {
            Halves::Sparse(kernels, rows) => {
                rows.each(part, |_, block| walk(OneBlock::Sparse(kernels, block)))
            }
            Halves::Dense(kernels, rows) => {
                rows.each(part, |block| walk(OneBlock::Dense(kernels, block)))
            }
        }
    }
}

impl<T: Number> OneBlock<'_, T> {
    /// Its rows among all.
    pub(in crate::ops) fn range(&self) -> Range<usize> {
        match self {
            OneBlock::Sparse(_, block) => block.range(),
            OneBlock::Dense(_, block) => block.range(),
        }
    }

    /// Launches one of the two products.
    pub(in crate::ops) fn multiply(
        &self,
        site: &Site<T>,
        call: Call<'_, '_, T>,
    ) -> Result<(), OpError> {
        let which = usize::from(call.product == Product::Transposed);
        match self {
            OneBlock::Sparse(halves, block) => halves[which].launch(block.args(site.cols, call)),
            OneBlock::Dense(kernels, block) => {
                Ok(kernels[which].launch(block.args(site.cols, call))?)
            }
        }
    }
}

impl<T: Number> OnDevice<T> for Halves<T> {
    fn writes_all(&self) -> bool {
        false
    }

    /// The pattern, block after block.
    fn run(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        debug_assert!(call.product == Product::Fused, "both halves");
        let Call {
            input,
            terms,
            output,
            part,
            ..
        } = call;
        site.with_row_vector(|p| {
            self.each(part, |block| {
                block.multiply(
                    site,
                    Call {
                        product: Product::Forward,
                        input,
                        terms: terms.of_first_half(),
                        output: &mut *p,
                        part,
                        within: None,
                    },
                )?;
                block.multiply(
                    site,
                    Call {
                        product: Product::Transposed,
                        input: p,
                        terms: terms.of_second_half(),
                        output: &mut *output,
                        part,
                        within: None,
                    },
                )
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, EmulatorOptions};
    use crate::matrix::{Features, csr_from_parts};
    use crate::ops::{Matrix, MatrixOptions, Terms};
    use crate::plan::fused::{Forced, Planner, Strategy};

    const ROWS: usize = 640;
    const COLS: usize = 50;

    /// Rows of 0 to 20 small integers, whose sums are exact in any order.
    fn features() -> Arc<Features<f32>> {
        let len = |row: usize| row * 8 % 21;
        let (mut offsets, mut indices) = (vec![0_u64], Vec::new());
        for row in 0..ROWS {
            indices.extend((0..len(row)).map(|i| (row % 10 + 2 * i) as u32));
            offsets.push(indices.len() as u64);
        }
        let values = (0..indices.len()).map(|i| (i % 5) as f32 - 1.0).collect();
        let x = csr_from_parts((ROWS, COLS), offsets, indices, values);
        Arc::new(Features::Sparse(x.expect("columns ascend")))
    }

    #[test]
    fn entries_of_blocks_that_stream_may_be_shared_out_evenly() {
        let device = Device::small_emulator(EmulatorOptions::default());
        let y = device.upload(&[1.0_f32; COLS]).expect("y");
        let whole = Matrix::new(&device, features()).expect("X");
        let mut expected = device.zeros(COLS).expect("w");
        whole
            .fused(&y, &Terms::default(), &mut expected)
            .expect("a product");
        let options = MatrixOptions {
            device_bytes: Some(1),
            ..MatrixOptions::default()
        };
        let x = Matrix::with_options(&device, features(), options).expect("X");
        assert!(x.residency().blocks > 10);
        let (limits, kernels) = x.choices().expect("kernels").expect("a GPU's");
        let plan = |strategy, product| {
            let forced = Forced {
                strategy: Some(strategy),
                ..Forced::default()
            };
            let planner = Planner::new(limits, &kernels).forced(forced);
            planner.plan(&x.shape, product).expect("a plan")
        };
        let plans = [
            plan(Strategy::RowDot, Product::Forward),
            plan(Strategy::EvenShared, Product::Transposed),
        ];
        let halves = x.forms.halves(&x.site, plans.each_ref());
        let halves = halves.expect("kernels").expect("a GPU's");
        assert!(matches!(
            &halves,
            Halves::Sparse([SparseHalf::OfRows(_), SparseHalf::OfShares(_)], _)
        ));
        let mut w = device.zeros(COLS).expect("w");
        let call = Call::plain(Product::Fused, &y, &mut w);
        halves.run(&x.site, call).expect("a product");
        let (w, expected) = (w.to_vec().expect("w"), expected.to_vec().expect("w"));
        assert!(expected.iter().any(|w| *w != 0.0));
        assert_eq!(w, expected);
    }
}
