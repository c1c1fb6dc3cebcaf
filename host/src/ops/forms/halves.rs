//! `X·y` and `Xᵀ·p` of each block while it is on the device: what streams crosses the link once for both.

use std::ops::Range;
use std::sync::Arc;

use super::dense::DenseRows;
use super::rows::SparseRows;
use super::site::{Call, OnDevice, Site};
use crate::device::Prepared;
use crate::ops::blocks::{DenseBlock, Part, SparseBlock};
use crate::ops::launch::prepare;
use crate::ops::{Number, OpError};
use crate::plan::fused::{Plan, Product};

/// One kernel for each of the two products, that adds without anything before or after.
pub(in crate::ops) enum Halves<T: Number> {
    /// Of sparse rows.
    Sparse([Prepared<T::Sparse>; 2], Arc<SparseRows<T>>),
    /// Of dense ones.
    Dense([Prepared<T::Dense>; 2], Arc<DenseRows<T>>),
}

/// A block of rows that is on the device.
pub(in crate::ops) enum OneBlock<'a, T: Number> {
    /// Of sparse rows.
    Sparse(&'a [Prepared<T::Sparse>; 2], SparseBlock<'a, T>),
    /// Of dense ones.
    Dense(&'a [Prepared<T::Dense>; 2], DenseBlock<'a, T>),
}

impl<T: Number> Halves<T> {
    /// The kernels that two plans name.
    pub(in crate::ops) fn sparse(
        site: &Site<T>,
        rows: &Arc<SparseRows<T>>,
        [forward, transposed]: [&Plan; 2],
    ) -> Result<Self, OpError> {
        let kernel = |plan| prepare::<T::Sparse>(&site.device, plan);
        let kernels = [kernel(forward)?, kernel(transposed)?];
        Ok(Halves::Sparse(kernels, rows.clone()))
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
            OneBlock::Sparse(kernels, block) => {
                kernels[which].launch(block.args(site.cols, call))?;
            }
            OneBlock::Dense(kernels, block) => {
                kernels[which].launch(block.args(site.cols, call))?;
            }
        }
        Ok(())
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
