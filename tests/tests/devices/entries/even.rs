//! Entries over even shares of a sparse X.

use anyhow::{Context, Result};
use gpu_kernels::cta::WARP;
use gpu_kernels::fused::even::sums::{BUSIEST, BUSY, NO_COLUMN, slot_of, slots};
use gpu_kernels::fused::even::{TILE, Window};
use gpu_kernels::fused::{EvenArgs, EvenPlace, Product};
use gpu_kernels::{Entry, In, Launch};
use warpfuse::device::Device;
use warpfuse::matrix::Features;
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{launch, most_shared_bytes};
use warpfuse_tests::sample::{FULL, PLAIN};

use super::fused::Operands;
use super::sparse::Csr;
use super::{Shape, cases, launches, words};

/// Rows of a tile and of one entry more, tiles of more rows than lanes, rows without entries, and of all sizes.
pub(super) const SMALL: [Shape; 5] = [
    ((0, 5), Pattern::Empty),
    ((5, 256), Pattern::OneFull),
    ((70, 257), Pattern::Giant(257)),
    ((300, 64), Pattern::EveryOther(3)),
    ((200, 300), Pattern::Growing(290)),
];

pub(super) const LARGE: [Shape; 3] = [
    ((65, 9_000), Pattern::Giant(8_500)),
    ((2_000, 3_000), Pattern::Zipf(20)),
    ((9, 5_000), Pattern::PerRow(4_999)),
];

pub(super) const MULTIPLIER: u32 = 0x9e37_79b1;

/// Runs one entry on every matrix, with all blocks and grids.
pub fn check<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Even>,
    subset: Subset,
) -> Result<()> {
    for case in cases(subset, &SMALL, &LARGE) {
        check_case::<T>(device, entry, &case, subset).with_context(|| case.to_string())?;
    }
    Ok(())
}

fn check_case<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Even>,
    case: &Case,
    subset: Subset,
) -> Result<()> {
    let sample = case.sample::<T>();
    let Features::Sparse(x) = &*sample.features else {
        return Ok(());
    };
    let x = Csr::upload(device, x)?;
    let cols = u64::from(x.cols);
    let shared = |cols, block| entry.variant.shared(T::SIZE).bytes(cols, block, WARP);
    let mut shapes = launches(device, entry, subset, |block| shared(cols, block))?;
    shapes.retain(|shape| u64::from(shape.shared_bytes) <= most_shared_bytes(device));
    for (parts, every) in [(PLAIN, 3), (FULL, 2)] {
        let operands = Operands::new(device, &sample, entry.variant.product, parts)?;
        let keys = words(device, &keys(x.cols, every, T::SIZE))?;
        for (turn, shape) in shapes.iter().enumerate() {
            operands.check(entry.name, *shape, |output| {
                let x = x.args(operands.given(), output);
                for window in windows(entry.variant.product, x.cols, turn + every) {
                    let args = EvenArgs {
                        x,
                        keys: match entry.variant.place {
                            EvenPlace::Shared => In::none(),
                            EvenPlace::Frequent => keys.input(),
                        },
                        multiplier: MULTIPLIER,
                        window,
                    };
                    // A window takes no more than its own columns do.
                    let own = Launch {
                        shared_bytes: u32::try_from(shared(
                            u64::from(window.columns),
                            shape.block,
                        ))?,
                        ..*shape
                    };
                    launch(device, entry, own, args)?;
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// What one launch after the other adds to: by turns all columns, or windows of which the last is smaller.
pub(super) fn windows(product: Product, cols: u32, turn: usize) -> Vec<Window> {
    let each = match turn % 3 {
        0 => cols / 7 + 3,
        1 => cols / 2 + 1,
        _ => cols.max(1),
    };
    if product != Product::Transposed || cols == 0 {
        return vec![Window::all(cols)];
    }
    let window = |first| Window {
        first,
        columns: each.min(cols - first),
    };
    (0..cols).step_by(each as usize).map(window).collect()
}

/// A table with one of `every` columns, the first ones busy: whoever wants a slot first has it.
pub(super) fn keys(cols: u32, every: usize, size: u32) -> Vec<u32> {
    let mut keys = vec![NO_COLUMN; slots(size) as usize];
    let mut is_taken = [false; BUSIEST as usize];
    for column in (0..cols).step_by(every) {
        let slot = slot_of(column, MULTIPLIER, size);
        let (key, own) = (&mut keys[slot as usize], (slot % BUSIEST) as usize);
        if *key == NO_COLUMN {
            let is_busy = column < TILE && !is_taken[own];
            is_taken[own] |= is_busy;
            *key = column | if is_busy { BUSY } else { 0 };
        }
    }
    keys
}
