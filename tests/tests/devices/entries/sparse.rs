//! Sparse entries.

use anyhow::{Context, Result};
use gpu_kernels::fused::SparseArgs;
use gpu_kernels::{Entry, In};
use warpfuse::device::Device;
use warpfuse::matrix::{CsrMatrix, Features};
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Guarded, launch, most_shared_bytes};
use warpfuse_tests::sample::{FULL, PLAIN};

use super::fused::{Given, Operands};
use super::{Shape, cases, input, launches, words};

/// CSR on a device, with guards.
pub struct Csr<T> {
    /// m.
    pub rows: u32,
    /// n.
    pub cols: u32,
    offsets: Guarded<u32>,
    indices: Guarded<u32>,
    values: Guarded<T>,
}

/// Runs one entry on every matrix, with all blocks and grids.
pub fn check<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Sparse>,
    subset: Subset,
) -> Result<()> {
    for case in cases(subset, &SMALL, &LARGE) {
        check_case::<T>(device, entry, &case, subset).with_context(|| case.to_string())?;
    }
    Ok(())
}

const SMALL: [Shape; 2] = [
    ((0, 5), Pattern::Empty),
    ((100, 64), Pattern::EveryOther(9)),
];

const LARGE: [Shape; 2] = [
    ((65, 3_000), Pattern::Giant(2_500)),
    // In shared memory these are more than 48 KB.
    ((70, 20_000), Pattern::PerRow(40)),
];

fn check_case<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Sparse>,
    case: &Case,
    subset: Subset,
) -> Result<()> {
    let sample = case.sample::<T>();
    let Features::Sparse(x) = &*sample.features else {
        return Ok(());
    };
    let x = Csr::upload(device, x)?;
    let shared = |block| entry.variant.shared_bytes(x.cols, block, T::SIZE);
    let mut shapes = launches(device, entry, subset, shared)?;
    shapes.retain(|shape| u64::from(shape.shared_bytes) <= most_shared_bytes(device));
    for parts in [PLAIN, FULL] {
        let operands = Operands::new(device, &sample, entry.variant.product, parts)?;
        for shape in &shapes {
            operands.check(entry.name, *shape, |output| {
                launch(device, entry, *shape, x.args(operands.given(), output))
            })?;
        }
    }
    Ok(())
}

impl<T: Number> Csr<T> {
    /// A copy with guards.
    pub fn upload(device: &Device, x: &CsrMatrix<T>) -> Result<Self> {
        let offsets = x.proper_indptr();
        let offsets: Vec<u32> = offsets.iter().map(|offset| *offset as u32).collect();
        Ok(Csr {
            rows: x.rows() as u32,
            cols: x.cols() as u32,
            offsets: words(device, &offsets)?,
            indices: words(device, x.indices())?,
            values: input(device, x.data())?,
        })
    }

    /// The arguments of a product.
    pub fn args<'a>(
        &'a self,
        given: Given<'a, T>,
        output: &'a mut Guarded<T>,
    ) -> SparseArgs<'a, T> {
        SparseArgs {
            rows: self.rows,
            cols: self.cols,
            offsets: self.offsets.input(),
            indices: self.indices.input(),
            values: self.values.input(),
            input: given.input,
            weights: given.weights,
            shift: given.shift,
            addend: given.addend,
            solve: In::none(),
            output: output.output(),
            alpha: given.alpha,
            beta: given.beta,
        }
    }
}
