//! Trials over a sparse matrix.

use anyhow::{Context, Result, ensure};
use gpu_kernels::fused::sparse::MAX_NONZEROS;
use gpu_kernels::fused::{Product as KernelProduct, SparseArgs};
use gpu_kernels::{Entry, Family, In, Real};
use warpfuse::device::Buffer;
use warpfuse::matrix::CsrMatrix;
use warpfuse::ops::Number;
use warpfuse::plan::fused::{Plan, Product};
use warpfuse_benches::gpu::Gpu;

use crate::bench::{Arrays, launch};
use crate::trial::{Grid, Trial, trial, trials};

const BLOCK_SIZES: [u32; 5] = [128, 256, 512, 768, 1024];
const BLOCKS_PER_SM: [u32; 8] = [1, 2, 3, 4, 6, 8, 12, 16];

/// X in CSR form, in one part.
pub struct SparseArrays<T> {
    rows: usize,
    cols: usize,
    offsets: Buffer<u32>,
    indices: Buffer<u32>,
    values: Buffer<T>,
}

impl<T: Number> SparseArrays<T> {
    /// A copy of X.
    pub fn upload(gpu: &Gpu, x: &CsrMatrix<T>) -> Result<SparseArrays<T>> {
        ensure!(
            x.nnz() as u64 <= u64::from(MAX_NONZEROS),
            "{} nonzeros need several parts",
            x.nnz()
        );
        let offsets: Vec<u32> = x
            .proper_indptr()
            .iter()
            .map(|&offset| offset as u32)
            .collect();
        Ok(SparseArrays {
            rows: x.rows(),
            cols: x.cols(),
            offsets: gpu.device.upload(&offsets)?,
            indices: gpu.device.upload(x.indices())?,
            values: gpu.device.upload(x.data())?,
        })
    }

    fn args<'a>(&'a self, input: &'a Buffer<T>, output: &'a mut Buffer<T>) -> SparseArgs<'a, T> {
        SparseArgs {
            rows: self.rows as u32,
            cols: self.cols as u32,
            offsets: self.offsets.input(),
            indices: self.indices.input(),
            values: self.values.input(),
            input: input.input(),
            weights: In::none(),
            shift: In::none(),
            addend: In::none(),
            solve: In::none(),
            output: output.output(),
            alpha: <T as Real>::ONE,
            beta: <T as Real>::ZERO,
        }
    }

    /// Shared memory of a block of an entry that computes the product; the device refuses what it has not.
    fn shared_bytes(
        &self,
        entry: &Entry<T::Sparse>,
        (product, block): (KernelProduct, u32),
    ) -> Option<u32> {
        let bytes = entry
            .variant
            .shared_bytes(self.cols as u32, block, size_of::<T>() as u32);
        (entry.variant.product == product)
            .then(|| u32::try_from(bytes).ok())
            .flatten()
    }
}

impl<T: Number> Arrays<T> for SparseArrays<T> {
    fn trials(
        &self,
        gpu: &Gpu,
        product: Product,
        input: &Buffer<T>,
        output: &mut Buffer<T>,
    ) -> Result<Vec<Trial>> {
        let sms = gpu.device.limits().context("a sweep needs a GPU")?.sms;
        let grid = Grid {
            block_sizes: &BLOCK_SIZES,
            blocks_per_sm: &BLOCKS_PER_SM,
            sms,
        };
        let product = KernelProduct::from(product);
        let shared_bytes =
            |entry: &Entry<T::Sparse>, block| self.shared_bytes(entry, (product, block));
        trials::<T::Sparse>(&gpu.device, &grid, shared_bytes, self.args(input, output))
    }

    fn planned(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        input: &Buffer<T>,
        output: &mut Buffer<T>,
    ) -> Option<Trial> {
        let entry = T::Sparse::entries()
            .iter()
            .find(|entry| entry.name == plan.kernel)?;
        trial(&gpu.device, entry, launch(plan), self.args(input, output))
    }
}
