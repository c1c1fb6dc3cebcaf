//! Entries with fixed-point sums: each runs in the chain of launches that it is made for.

use anyhow::{Context, Result};
use gpu_kernels::fused::{FixedArgs, FixedVariant, Product as KernelProduct, SparseArgs};
use gpu_kernels::{Entry, Family, In, Launch, Out};
use warpfuse::matrix::Features;
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Array, Launcher, guarded, unguarded};
use warpfuse_tests::sample::{FULL, PLAIN};

use super::fused::Operands;
use super::sparse::{Csr, upload};
use super::{Shape, blocks, cases, grids, number};

/// What is behind the end of a working array.
const GUARD_WORD: u32 = 0xdead_beef;

/// Runs one entry that walks rows with all blocks and grids; the others run in every chain.
pub fn check<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::Fixed>,
    subset: Subset,
) -> Result<()> {
    let of_walk =
        |entry: &&Entry<T::Fixed>| matches!(entry.variant, FixedVariant::Accumulate { .. });
    let walk = match entry.variant {
        FixedVariant::Accumulate { .. } => entry,
        _ => T::Fixed::entries()
            .iter()
            .find(of_walk)
            .context("no walk")?,
    };
    if walk.variant.cluster() > 1 && !launcher.has_clusters() {
        return Ok(());
    }
    for case in cases(subset, &SMALL, &LARGE) {
        check_case::<L, T>(launcher, walk, &case, subset).with_context(|| case.to_string())?;
    }
    Ok(())
}

/// An even number of columns and an odd one, shared between two blocks.
const SMALL: [Shape; 2] = [((40, 2), Pattern::PerRow(2)), ((40, 3), Pattern::PerRow(2))];

const LARGE: [Shape; 2] = [
    ((65, 3_000), Pattern::Giant(2_500)),
    ((3_000, 9), Pattern::OneColumn),
];

/// The arrays that the chain works on, guarded.
struct Chain<'a, L: Launcher, T: Number> {
    launcher: &'a L,
    x: &'a Csr<L, T>,
    exponents: L::Array<u32>,
    values: L::Array<T>,
    y: L::Array<T>,
    ranges: L::Array<u32>,
    sums: L::Array<u64>,
}

fn check_case<L: Launcher, T: Number>(
    launcher: &L,
    walk: &'static Entry<T::Fixed>,
    case: &Case,
    subset: Subset,
) -> Result<()> {
    let FixedVariant::Accumulate { product: of, .. } = walk.variant else {
        return Ok(());
    };
    let sample = case.sample::<T>();
    let Features::Sparse(matrix) = &*sample.features else {
        return Ok(());
    };
    let x = upload::<L, T>(launcher, matrix)?;
    let nan: T = number(f64::NAN);
    for parts in [PLAIN, FULL] {
        let operands = Operands::of_overwriting(launcher, &sample, Product::from(of), parts)?;
        for block in blocks(launcher, walk, subset)? {
            // Of clusters, as many.
            for grid in grids(subset)
                .iter()
                .map(|grid| walk.variant.cluster() * grid)
            {
                let mut chain = Chain {
                    launcher,
                    x: &x,
                    exponents: guarded(launcher, &vec![0; case.cols + 1], GUARD_WORD)?,
                    values: guarded(launcher, &vec![nan; matrix.nnz()], nan)?,
                    y: guarded(launcher, &vec![nan; case.cols], nan)?,
                    // The kernels look at all of it.
                    ranges: launcher.upload(&vec![0; 2 * grid as usize])?,
                    sums: guarded(launcher, &vec![0; case.cols * T::LIMBS], 7)?,
                };
                let shape = Launch {
                    grid,
                    block,
                    shared_bytes: 0,
                };
                operands.check(walk.name, shape, |output| {
                    chain.run(walk, &operands, (grid, block), output)
                })?;
            }
        }
    }
    Ok(())
}

impl<L: Launcher, T: Number> Chain<'_, L, T> {
    fn run(
        &mut self,
        walk: &'static Entry<T::Fixed>,
        operands: &Operands<'_, L, T>,
        shape: (u32, u32),
        output: &mut L::Array<T>,
    ) -> Result<()> {
        let FixedVariant::Accumulate { product, .. } = walk.variant else {
            return Ok(());
        };
        for variant in [
            FixedVariant::Columns,
            FixedVariant::Equilibrate,
            FixedVariant::Begin(product),
            walk.variant,
            FixedVariant::Finish,
        ] {
            let entry = T::Fixed::entries().iter().find(|e| e.variant == variant);
            let entry = entry.context("an entry for every step")?;
            self.launch(entry, operands, shape, output)?;
        }
        let (exponents, sums) = (
            unguarded(&self.exponents, GUARD_WORD),
            unguarded(&self.sums, 7)?,
        );
        unguarded(&self.values, number(f64::NAN))?;
        unguarded(&self.y, number(f64::NAN))?;
        exponents?;
        anyhow::ensure!(sums.iter().all(|sum| *sum == 0), "sums are left behind");
        Ok(())
    }

    fn launch(
        &mut self,
        entry: &'static Entry<T::Fixed>,
        operands: &Operands<'_, L, T>,
        (grid, block): (u32, u32),
        output: &mut L::Array<T>,
    ) -> Result<()> {
        let shared = entry
            .variant
            .shared_bytes(self.x.cols, block, size_of::<T>() as u32);
        let shape = Launch {
            grid,
            block,
            shared_bytes: shared as u32,
        };
        let (alpha, beta) = operands.scalars;
        let (x, y) = (self.x.values.input(), operands.input());
        let (values, input, scaled) = match entry.variant {
            FixedVariant::Columns => (x, y, Out::none()),
            FixedVariant::Equilibrate => (x, y, self.values.output()),
            FixedVariant::Begin(_) => (In::none(), y, self.y.output()),
            FixedVariant::Accumulate {
                product: KernelProduct::Transposed,
                ..
            } => (self.values.input(), y, Out::none()),
            _ => (self.values.input(), self.y.input(), Out::none()),
        };
        let args = FixedArgs {
            x: SparseArgs {
                rows: self.x.rows,
                cols: self.x.cols,
                offsets: self.x.offsets.input(),
                indices: self.x.indices.input(),
                values,
                input,
                weights: operands.weights(),
                shift: operands.shift(),
                addend: operands.addend(),
                output: output.output(),
                alpha,
                beta,
            },
            all_rows: u64::from(self.x.rows),
            longest: self.x.cols,
            exponents: self.exponents.output(),
            scaled,
            ranges: self.ranges.output(),
            sums: self.sums.output(),
        };
        self.launcher.launch(entry, shape, args)
    }
}
