//! Balanced entries: each runs in the chain of launches that it is made for.

use anyhow::{Context, Result, ensure};
use gpu_kernels::fused::balanced::{THREADS, tiles};
use gpu_kernels::fused::{BalancedArgs, BalancedVariant, SparseArgs};
use gpu_kernels::{Entry, Family, In, Launch};
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
use super::{Shape, cases, grids, number};

/// What is behind the end of the starts.
const GUARD_WORD: u32 = 0xdead_beef;

/// Rows and nonzeros that fill tiles exactly, rows over two tiles, and tiles without nonzeros.
const SMALL: [Shape; 3] = [
    ((3, 2_100), Pattern::OneFull),
    ((2_048, 30), Pattern::Empty),
    ((1_024, 64), Pattern::PerRow(1)),
];

/// Rows over many tiles, alone and among short ones.
const LARGE: [Shape; 5] = [
    ((3, 70_000), Pattern::OneFull),
    ((65, 9_000), Pattern::Giant(8_500)),
    ((9, 5_000), Pattern::PerRow(4_999)),
    ((50_000, 9), Pattern::EveryOther(2)),
    ((20_000, 3), Pattern::OneFull),
];

/// Runs the chain of launches that every entry belongs to, with all grids.
pub fn check<L: Launcher, T: Number>(
    launcher: &L,
    _: &'static Entry<T::Balanced>,
    subset: Subset,
) -> Result<()> {
    for case in cases(subset, &SMALL, &LARGE) {
        check_case::<L, T>(launcher, &case, subset).with_context(|| case.to_string())?;
    }
    Ok(())
}

fn check_case<L: Launcher, T: Number>(launcher: &L, case: &Case, subset: Subset) -> Result<()> {
    let sample = case.sample::<T>();
    let Features::Sparse(matrix) = &*sample.features else {
        return Ok(());
    };
    let x = upload::<L, T>(launcher, matrix)?;
    for parts in [PLAIN, FULL] {
        let operands = Operands::new(launcher, &sample, Product::Forward, parts)?;
        let mut bits = None;
        for &grid in grids(subset) {
            let mut chain = Chain::<L, T>::new(launcher, (&x, matrix.nnz()))?;
            let shape = Launch {
                grid,
                block: THREADS,
                shared_bytes: 0,
            };
            operands.check("balanced_walk", shape, |output| {
                chain.run(&operands, grid, output)?;
                let found: Vec<u64> = output.values()?.iter().map(|p| p.to_bits()).collect();
                ensure!(
                    *bits.get_or_insert_with(|| found.clone()) == found,
                    "the grid of {grid} gives other bits than the first"
                );
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// The arrays that the chain works on.
struct Chain<'a, L: Launcher, T: Number> {
    launcher: &'a L,
    x: &'a Csr<L, T>,
    starts: L::Array<u32>,
    heads: L::Array<T>,
    carries: L::Array<T>,
}

impl<'a, L: Launcher, T: Number> Chain<'a, L, T> {
    fn new(launcher: &'a L, (x, nonzeros): (&'a Csr<L, T>, usize)) -> Result<Self> {
        // The contract is told by arrays with guards.
        let told = nonzeros + warpfuse_tests::launcher::GUARD;
        let count = tiles(u64::from(x.rows), told as u64) as usize;
        let nan: T = number(f64::NAN);
        Ok(Chain {
            launcher,
            x,
            starts: guarded(launcher, &vec![GUARD_WORD; count + 1], GUARD_WORD)?,
            heads: guarded(launcher, &vec![nan; count], nan)?,
            carries: guarded(launcher, &vec![nan; count], nan)?,
        })
    }

    fn run(
        &mut self,
        operands: &Operands<'_, L, T>,
        grid: u32,
        output: &mut L::Array<T>,
    ) -> Result<()> {
        let steps = [
            BalancedVariant::Partition,
            BalancedVariant::Walk,
            BalancedVariant::Finish,
        ];
        for step in steps {
            let mut entries = T::Balanced::entries().iter();
            let entry = entries.find(|entry| entry.variant == step);
            let shape = Launch {
                grid,
                block: THREADS,
                shared_bytes: step.shared_bytes(size_of::<T>() as u32) as u32,
            };
            let launcher = self.launcher;
            let args = self.args(operands, output);
            launcher.launch(entry.context("an entry for every step")?, shape, args)?;
        }
        unguarded(&self.starts, GUARD_WORD)?;
        for array in [&self.heads, &self.carries] {
            unguarded(array, number(f64::NAN))?;
        }
        Ok(())
    }

    fn args<'b>(
        &'b mut self,
        operands: &'b Operands<'_, L, T>,
        output: &'b mut L::Array<T>,
    ) -> BalancedArgs<'b, T> {
        let (alpha, beta) = operands.scalars;
        BalancedArgs {
            x: SparseArgs {
                rows: self.x.rows,
                cols: self.x.cols,
                offsets: self.x.offsets.input(),
                indices: self.x.indices.input(),
                values: self.x.values.input(),
                input: operands.input(),
                weights: operands.weights(),
                shift: operands.shift(),
                addend: operands.addend(),
                output: output.output(),
                alpha,
                beta,
            },
            input_weights: In::none(),
            starts: self.starts.output(),
            heads: self.heads.output(),
            carries: self.carries.output(),
        }
    }
}
