//! Sparse entries.

use anyhow::{Context, Result};
use gpu_kernels::fused::SparseArgs;
use gpu_kernels::{Entry, Launch};
use warpfuse::matrix::{CsrMatrix, Features};
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Array, Launcher, guarded};
use warpfuse_tests::sample::{FULL, PLAIN};

use super::fused::Operands;
use super::{Shape, blocks, cases, grids, number};

/// CSR on a device.
pub struct Csr<L: Launcher, T: Number> {
    /// m.
    pub rows: u32,
    /// n.
    pub cols: u32,
    /// m + 1 offsets.
    pub offsets: L::Array<u32>,
    /// Columns.
    pub indices: L::Array<u32>,
    /// Values.
    pub values: L::Array<T>,
}

/// Runs one entry on every matrix, with all blocks and grids.
pub fn check<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::Sparse>,
    subset: Subset,
) -> Result<()> {
    for case in cases(subset, &SMALL, &LARGE) {
        check_case::<L, T>(launcher, entry, &case, subset).with_context(|| case.to_string())?;
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

fn check_case<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::Sparse>,
    case: &Case,
    subset: Subset,
) -> Result<()> {
    let sample = case.sample::<T>();
    let Features::Sparse(x) = &*sample.features else {
        return Ok(());
    };
    let x = upload::<L, T>(launcher, x)?;
    for parts in [PLAIN, FULL] {
        let operands = Operands::new(launcher, &sample, entry.variant.product, parts)?;
        for block in blocks(launcher, entry, subset)? {
            let bytes = size_of::<T>() as u32;
            let shared_bytes = entry.variant.shared_bytes(x.cols, block, bytes);
            if shared_bytes > launcher.most_shared_bytes() {
                continue;
            }
            for &grid in grids(subset) {
                let shape = Launch {
                    grid,
                    block,
                    shared_bytes: shared_bytes as u32,
                };
                operands.check(entry.name, shape, |output| {
                    launcher.launch(entry, shape, args(&x, &operands, output))
                })?;
            }
        }
    }
    Ok(())
}

fn args<'a, L: Launcher, T: Number>(
    x: &'a Csr<L, T>,
    operands: &'a Operands<'_, L, T>,
    output: &'a mut L::Array<T>,
) -> SparseArgs<'a, T> {
    let (alpha, beta) = operands.scalars;
    SparseArgs {
        rows: x.rows,
        cols: x.cols,
        offsets: x.offsets.input(),
        indices: x.indices.input(),
        values: x.values.input(),
        input: operands.input(),
        weights: operands.weights(),
        shift: operands.shift(),
        addend: operands.addend(),
        output: output.output(),
        alpha,
        beta,
    }
}

/// A copy with guards.
pub fn upload<L: Launcher, T: Number>(launcher: &L, x: &CsrMatrix<T>) -> Result<Csr<L, T>> {
    let offsets: Vec<u32> = x
        .proper_indptr()
        .iter()
        .map(|offset| *offset as u32)
        .collect();
    Ok(Csr {
        rows: x.rows() as u32,
        cols: x.cols() as u32,
        offsets: guarded(launcher, &offsets, u32::MAX)?,
        indices: guarded(launcher, x.indices(), u32::MAX)?,
        values: guarded(launcher, x.data(), number(f64::NAN))?,
    })
}
