//! Trials over a dense matrix.

use anyhow::{Context, Result};
use gpu_kernels::fused::{DenseArgs, Product as KernelProduct, RowStore};
use gpu_kernels::{Entry, Family, In, Real};
use ndarray::Array2;
use warpfuse::device::Buffer;
use warpfuse::device::buffer::RowLayout;
use warpfuse::ops::Number;
use warpfuse::plan::fused::{Plan, Product};
use warpfuse_benches::gpu::Gpu;

use crate::bench::{Arrays, launch};
use crate::trial::{Grid, Trial, trial, trials};

const BLOCK_SIZES: [u32; 4] = [128, 256, 512, 1024];
const BLOCKS_PER_SM: [u32; 6] = [1, 2, 3, 4, 8, 16];
/// An entry whose registers hold more columns than this many times those of X, and a few, wastes most of them.
const WASTE: u64 = 4;
const FEW: u64 = 64;

/// Row-major X.
pub struct DenseArrays<T> {
    rows: usize,
    cols: usize,
    pitch: usize,
    values: Buffer<T>,
}

impl<T: Number> DenseArrays<T> {
    /// A copy with `pitch` elements from row to row.
    pub fn upload(gpu: &Gpu, x: &Array2<T>, pitch: usize) -> Result<DenseArrays<T>> {
        let (rows, cols) = x.dim();
        let values = x.as_slice().context("benchmark data are row-major")?;
        let values = gpu
            .device
            .upload_rows(values, RowLayout { rows, cols, pitch })?;
        Ok(DenseArrays {
            rows,
            cols,
            pitch,
            values,
        })
    }

    fn args<'a>(&'a self, input: &'a Buffer<T>, output: &'a mut Buffer<T>) -> DenseArgs<'a, T> {
        DenseArgs {
            rows: self.rows as u32,
            cols: self.cols as u32,
            chunks: 0,
            ld: self.pitch as u64,
            x: self.values.input(),
            input: input.input(),
            weights: In::none(),
            shift: In::none(),
            addend: In::none(),
            output: output.output(),
            alpha: <T as Real>::ONE,
            beta: <T as Real>::ZERO,
        }
    }

    /// Shared memory of an entry, where it computes the product and suits the width.
    fn shared_bytes(
        &self,
        entry: &Entry<T::Dense>,
        product: KernelProduct,
        block: u32,
    ) -> Option<u32> {
        let variant = &entry.variant;
        let (held, cols) = (variant.columns(block), self.cols as u64);
        let suits = product != KernelProduct::Fused || (cols..=WASTE * cols + FEW).contains(&held);
        let is_tile = matches!(variant.held, RowStore::Tiles { .. });
        let has_gaps = self.pitch != self.cols.next_multiple_of(variant.width as usize);
        let suits = suits && block <= variant.most_threads() && !(is_tile && has_gaps);
        let bytes = variant.shared_bytes(block, self.pitch as u64, size_of::<T>() as u32);
        (variant.product == product && suits)
            .then(|| u32::try_from(bytes).ok())
            .flatten()
    }
}

impl<T: Number> Arrays<T> for DenseArrays<T> {
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
            |entry: &Entry<T::Dense>, block| self.shared_bytes(entry, product, block);
        trials::<T::Dense>(&gpu.device, &grid, shared_bytes, self.args(input, output))
    }

    fn planned(
        &self,
        gpu: &Gpu,
        plan: &Plan,
        input: &Buffer<T>,
        output: &mut Buffer<T>,
    ) -> Option<Trial> {
        let entry = T::Dense::entries()
            .iter()
            .find(|entry| entry.name == plan.kernel)?;
        trial(&gpu.device, entry, launch(plan), self.args(input, output))
    }
}
