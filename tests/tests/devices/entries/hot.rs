//! Entries for hot columns, every column hot: each runs in the chain of launches that it is made for.

use anyhow::{Context, Result};
use gpu_kernels::fused::{HotArgs, HotVariant, Product as KernelProduct, SparseArgs};
use gpu_kernels::{Entry, Family, In, Launch};
use warpfuse::matrix::Features;
use warpfuse::matrix::hot::{HotLayout, HotSize};
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Array, Launcher, guarded, unguarded};
use warpfuse_tests::sample::{FULL, PLAIN};

use super::fused::{Operands, product};
use super::{Shape, blocks, cases, grids, number};

/// What is behind the end of a working array.
const GUARD_WORD: u32 = 0xdead_beef;

const LARGE: [Shape; 3] = [
    ((65, 1_000), Pattern::Giant(900)),
    ((300, 90), Pattern::Growing(85)),
    ((3_000, 9), Pattern::OneColumn),
];

/// Runs one walk with all blocks and grids; the other entries run in every chain.
pub fn check<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::Hot>,
    subset: Subset,
) -> Result<()> {
    let of = match entry.variant {
        HotVariant::Begin(of) | HotVariant::Walk(of) => of,
        HotVariant::Finish => KernelProduct::Fused,
    };
    for case in cases(subset, &[], &LARGE) {
        check_case::<L, T>(launcher, of, &case, subset).with_context(|| case.to_string())?;
    }
    Ok(())
}

fn step<T: Number>(variant: HotVariant) -> Result<&'static Entry<T::Hot>> {
    let mut entries = T::Hot::entries().iter();
    let found = entries.find(|entry| entry.variant == variant);
    found.context("an entry for every step")
}

fn check_case<L: Launcher, T: Number>(
    launcher: &L,
    of: KernelProduct,
    case: &Case,
    subset: Subset,
) -> Result<()> {
    let sample = case.sample::<T>();
    let Features::Sparse(matrix) = &*sample.features else {
        return Ok(());
    };
    let all = HotSize {
        most: usize::MAX,
        least: 1,
    };
    let layout = HotLayout::new(matrix, all).context("a small matrix")?;
    let walk = step::<T>(HotVariant::Walk(of))?;
    for parts in [PLAIN, FULL] {
        let operands = Operands::of_overwriting(launcher, &sample, product(of), parts)?;
        for block in blocks(launcher, walk, subset)? {
            for &grid in grids(subset) {
                let mut chain = Chain::<L, T>::new(launcher, (&layout, matrix.shape()), grid)?;
                let shape = Launch {
                    grid,
                    block,
                    shared_bytes: 0,
                };
                operands.check(walk.name, shape, |output| {
                    chain.run(of, &operands, (grid, block), output)
                })?;
            }
        }
    }
    Ok(())
}

/// The arrays that the chain works on, guarded where no kernel takes the length from them.
struct Chain<'a, L: Launcher, T: Number> {
    launcher: &'a L,
    layout: &'a HotLayout<T>,
    /// m and n.
    shape: (usize, usize),
    offsets: L::Array<u32>,
    indices: L::Array<u32>,
    values: L::Array<T>,
    order: Option<L::Array<u32>>,
    columns: L::Array<u32>,
    exponents: L::Array<u32>,
    hot: L::Array<T>,
    ranges: L::Array<u32>,
    sums: L::Array<u64>,
    specials: L::Array<T>,
    factors: L::Array<T>,
}

impl<'a, L: Launcher, T: Number> Chain<'a, L, T> {
    fn new(
        launcher: &'a L,
        (layout, shape): (&'a HotLayout<T>, (usize, usize)),
        grid: u32,
    ) -> Result<Self> {
        let words = |words: &[u32]| guarded(launcher, words, GUARD_WORD);
        let (places, rows) = (layout.columns.len(), layout.cold.rows());
        let (zero, nan): (T, T) = (number(0.0), number(f64::NAN));
        Ok(Chain {
            launcher,
            layout,
            shape,
            offsets: words(&layout.offsets)?,
            // As long as one another: the contract says so.
            indices: launcher.upload(&layout.indices)?,
            values: launcher.upload(&layout.values)?,
            order: layout.order.as_deref().map(words).transpose()?,
            columns: launcher.upload(&layout.columns)?,
            exponents: words(&layout.exponents)?,
            hot: guarded(launcher, &vec![nan; places], nan)?,
            ranges: launcher.upload(&vec![0; 2 * grid as usize])?,
            sums: guarded(launcher, &vec![0; places * T::LIMBS], 7)?,
            specials: guarded(launcher, &vec![zero; places], nan)?,
            factors: guarded(launcher, &vec![nan; rows], nan)?,
        })
    }

    fn run(
        &mut self,
        of: KernelProduct,
        operands: &Operands<'_, L, T>,
        shape: (u32, u32),
        output: &mut L::Array<T>,
    ) -> Result<()> {
        let steps = [
            HotVariant::Begin(of),
            HotVariant::Walk(of),
            HotVariant::Finish,
        ];
        for variant in steps {
            self.launch(step::<T>(variant)?, operands, shape, output)?;
        }
        let left = unguarded(&self.sums, 7)?;
        anyhow::ensure!(left.iter().all(|sum| *sum == 0), "sums are left behind");
        for array in [&self.hot, &self.specials, &self.factors] {
            unguarded(array, number(f64::NAN))?;
        }
        Ok(())
    }

    fn launch(
        &mut self,
        entry: &'static Entry<T::Hot>,
        operands: &Operands<'_, L, T>,
        (grid, block): (u32, u32),
        output: &mut L::Array<T>,
    ) -> Result<()> {
        let places = self.layout.columns.len() as u32;
        let variant = entry.variant;
        let shape = Launch {
            grid,
            block,
            shared_bytes: variant.shared_bytes(places, block, size_of::<T>() as u32) as u32,
        };
        let (alpha, beta) = operands.scalars;
        let (rows, cols) = self.shape;
        let args = HotArgs {
            x: SparseArgs {
                rows: rows as u32,
                cols: cols as u32,
                offsets: self.offsets.input(),
                indices: self.indices.input(),
                values: self.values.input(),
                input: operands.input(),
                weights: operands.weights(),
                shift: operands.shift(),
                addend: operands.addend(),
                output: output.output(),
                alpha,
                beta,
            },
            order: self.order.as_ref().map_or(In::none(), Array::input),
            slices: self.layout.slices,
            longest: cols as u32,
            columns: self.columns.input(),
            exponents: self.exponents.input(),
            non_finite: u32::from(self.layout.has_non_finite),
            hot: self.hot.output(),
            ranges: self.ranges.output(),
            sums: self.sums.output(),
            specials: self.specials.output(),
            factors: self.factors.output(),
        };
        self.launcher.launch(entry, shape, args)
    }
}
