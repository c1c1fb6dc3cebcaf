//! Balanced entries: each runs in the chain of launches that it is made for.

use anyhow::{Context, Result, ensure};
use gpu_kernels::cta::WARP;
use gpu_kernels::fused::balanced::{THREADS, tiles};
use gpu_kernels::fused::{BalancedArgs, BalancedVariant};
use gpu_kernels::{Entry, Family, In, Launch};
use warpfuse::device::Device;
use warpfuse::matrix::Features;
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Guarded, launch};
use warpfuse_tests::sample::{FULL, PLAIN};

use super::fused::Operands;
use super::sparse::Csr;
use super::{CANARY_WORD, Shape, cases, in_grids, scratch};

/// Rows and nonzeros that fill tiles exactly, rows over two tiles, long ones among short ones, and tiles without nonzeros.
const SMALL: [Shape; 4] = [
    ((3, 2_100), Pattern::OneFull),
    ((2_048, 30), Pattern::Empty),
    ((1_024, 64), Pattern::PerRow(1)),
    // A row of 900 among some hundred of three in one tile.
    ((360, 1_000), Pattern::Giant(900)),
];

/// Rows over many tiles, alone and among short ones.
const LARGE: [Shape; 5] = [
    ((3, 70_000), Pattern::OneFull),
    ((65, 9_000), Pattern::Giant(8_500)),
    ((9, 5_000), Pattern::PerRow(4_999)),
    ((50_000, 9), Pattern::EveryOther(2)),
    ((20_000, 3), Pattern::OneFull),
];

/// What any GPU lets a block have of shared memory.
const SHARED_BYTES: u64 = 160 << 10;

/// Runs the chain of launches that every entry belongs to, with all grids.
pub fn check<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Balanced>,
    subset: Subset,
) -> Result<()> {
    for case in cases(subset, &SMALL, &LARGE) {
        check_case::<T>((device, entry), &case, subset).with_context(|| case.to_string())?;
    }
    Ok(())
}

fn check_case<T: Number>(
    (device, entry): (&Device, &'static Entry<T::Balanced>),
    case: &Case,
    subset: Subset,
) -> Result<()> {
    let walk = match entry.variant {
        BalancedVariant::Partition | BalancedVariant::Finish => BalancedVariant::Walk,
        walk => walk,
    };
    let threads = walk.threads(T::SIZE).unwrap_or(THREADS);
    let sample = case.sample::<T>();
    let Features::Sparse(matrix) = &*sample.features else {
        return Ok(());
    };
    let x = Csr::upload(device, matrix)?;
    let shared = walk.shared(T::SIZE).bytes(u64::from(x.cols), threads, WARP);
    if shared > SHARED_BYTES {
        return Ok(());
    }
    for parts in [PLAIN, FULL] {
        let operands = Operands::new(device, &sample, Product::Forward, parts)?;
        let mut bits = None;
        for shape in in_grids(subset, threads, 0) {
            let mut chain = Chain::new(device, (&x, walk), matrix.nnz())?;
            operands.check("balanced_walk", shape, |output| {
                chain.run(&operands, shape, output)?;
                let found: Vec<u64> = output.values()?.iter().map(|p| p.to_bits()).collect();
                ensure!(
                    *bits.get_or_insert_with(|| found.clone()) == found,
                    "this grid gives other bits than the first"
                );
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// The arrays that the chain works on.
struct Chain<'a, T> {
    device: &'a Device,
    x: &'a Csr<T>,
    nonzeros: usize,
    tiles: u32,
    walk: BalancedVariant,
    starts: Guarded<u32>,
    heads: Guarded<T>,
    carries: Guarded<T>,
    tickets: Guarded<u32>,
}

impl<'a, T: Number> Chain<'a, T> {
    fn new(
        device: &'a Device,
        (x, walk): (&'a Csr<T>, BalancedVariant),
        nonzeros: usize,
    ) -> Result<Self> {
        let count = tiles(u64::from(x.rows), nonzeros as u64) as usize;
        Ok(Chain {
            device,
            x,
            nonzeros,
            tiles: count as u32,
            walk,
            starts: Guarded::new(device, &vec![CANARY_WORD; count + 1], CANARY_WORD)?,
            heads: scratch(device, count)?,
            carries: scratch(device, count)?,
            tickets: Guarded::new(device, &vec![0; count], CANARY_WORD)?,
        })
    }

    fn run(
        &mut self,
        operands: &Operands<'_, T>,
        shape: Launch,
        output: &mut Guarded<T>,
    ) -> Result<()> {
        let steps = [
            BalancedVariant::Partition,
            self.walk,
            BalancedVariant::Finish,
        ];
        // Walks that have all tiles at once leave nothing to finish.
        let count = match self.walk {
            BalancedVariant::WalkAtOnce => 2,
            _ => 3,
        };
        for step in steps.into_iter().take(count) {
            let mut entries = T::Balanced::entries().iter();
            let entry = entries.find(|entry| entry.variant == step);
            let cols = u64::from(self.x.cols);
            let grid = match step {
                BalancedVariant::WalkAtOnce => shape.grid.max(self.tiles),
                _ => shape.grid,
            };
            let shape = Launch {
                grid,
                shared_bytes: step.shared(T::SIZE).bytes(cols, shape.block, WARP) as u32,
                ..shape
            };
            let args = BalancedArgs {
                x: self.x.args(operands.given(), output),
                nonzeros: self.nonzeros as u32,
                input_weights: In::none(),
                starts: self.starts.output(),
                heads: self.heads.output(),
                carries: self.carries.output(),
                tickets: self.tickets.output(),
            };
            launch(
                self.device,
                entry.context("an entry for every step")?,
                shape,
                args,
            )?;
        }
        self.starts.values()?;
        self.heads.values()?;
        self.carries.values()?;
        let tickets = self.tickets.values()?;
        ensure!(
            tickets.iter().all(|drawn| *drawn == 0),
            "expected that each row's last tile sets its number back, found {tickets:?}"
        );
        Ok(())
    }
}
