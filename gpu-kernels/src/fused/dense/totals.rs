//! Sums over the chunks of a dense X, in an order of their own.
//!
//! Formula: `w = α · Σ_c sums[c] + β · z` for c below the number of chunks, as [`crate::fused::DenseArgs::chunks`] leaves them.
//!
//! Mapping: a block of [`SLOTS`] warps takes 32 columns at a time, a lane each; warp s adds up chunks s, s + [`SLOTS`],
//! …, then the warps' sums are added, the first first. Shared memory: a number per thread. Result: w, all of it, when
//! the kernel has ended. Guarantees: the same bits whatever the grid.
//!
//! Source: ours; a fixed tree is the usual way to reproducible sums.

use crate::cta::{Cache, Cta, Shared, WARP};
use crate::fused::dense::order::SLOTS;
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::verbs::load_or;

/// Chunks that a thread reads before it adds the first.
const AHEAD: usize = 16;

/// The family of sums over chunks.
pub struct DenseTotals<T>(core::marker::PhantomData<T>);

/// Arguments of sums over chunks.
#[repr(C)]
pub struct TotalArgs<'a, T> {
    /// n.
    pub cols: u32,
    /// Chunks.
    pub chunks: u32,
    /// What the chunks come to: chunks × n elements.
    pub sums: In<'a, T>,
    /// z (n elements), optional.
    pub addend: In<'a, T>,
    /// w (n elements).
    pub output: Out<'a, T>,
    /// α.
    pub alpha: T,
    /// β.
    pub beta: T,
}

impl<T: Copy> Clone for TotalArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for TotalArgs<'_, T> {}

/// There is one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TotalVariant;

impl TotalVariant {
    /// Threads of a block.
    pub const THREADS: u32 = SLOTS * WARP;
    /// Columns that a block adds up at a time.
    pub const COLUMNS: u32 = WARP;

    /// Dynamic shared memory of a block for elements of `size` bytes.
    pub const fn shared_bytes(&self, size: u32) -> u32 {
        Self::THREADS * size
    }
}

/// The body.
#[inline(always)]
fn total<C: Cta, T: Real>(cta: &C, args: &TotalArgs<'_, T>) {
    let of_slots = Shared::at(0, TotalVariant::THREADS);
    let (slot, lane) = (cta.thread() / WARP, cta.thread() % WARP);
    let mut start = cta.block() * WARP;
    while start < args.cols {
        let column = start + lane;
        let sum = sum_of_slot(cta, args, column, slot);
        cta.shared_write(of_slots, cta.thread() as usize, sum);
        cta.sync();
        if slot == 0 && column < args.cols {
            let mut sum = T::ZERO;
            for slot in 0..SLOTS {
                sum = sum + cta.shared_read(of_slots, (slot * WARP + lane) as usize);
            }
            let addend = args.beta * load_or(cta, args.addend, column as usize, T::ZERO);
            cta.write(args.output, column as usize, args.alpha.fma(sum, addend));
        }
        cta.sync();
        start += cta.blocks() * WARP;
    }
}

#[inline(always)]
fn sum_of_slot<C: Cta, T: Real>(cta: &C, args: &TotalArgs<'_, T>, column: u32, slot: u32) -> T {
    let mut sum = T::ZERO;
    if column >= args.cols {
        return sum;
    }
    let mut first = slot;
    while first < args.chunks {
        let chunk = |i: usize| first + i as u32 * SLOTS;
        let values: [T; AHEAD] = core::array::from_fn(|i| {
            let at = chunk(i) as u64 * args.cols as u64 + column as u64;
            if chunk(i) < args.chunks {
                cta.load(args.sums, at as usize, Cache::Once)
            } else {
                T::ZERO
            }
        });
        for (i, value) in values.into_iter().enumerate() {
            if chunk(i) < args.chunks {
                sum = sum + value;
            }
        }
        first += AHEAD as u32 * SLOTS;
    }
    sum
}

fn check<T: Real>(
    variant: &TotalVariant,
    launch: &Launch,
    args: &TotalArgs<'_, T>,
) -> Result<(), Violation> {
    let (n, chunks) = (args.cols as u64, args.chunks as u64);
    Violation::equal("block", TotalVariant::THREADS as u64, launch.block as u64)?;
    let shared = variant.shared_bytes(T::SIZE) as u64;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    Violation::at_most("columns", crate::fused::dense::MAX_COLUMNS as u64, n)?;
    Violation::at_most("chunks", 1 << 31, chunks)?;
    Violation::at_least("length of the chunks' sums", chunks * n, args.sums.len())?;
    Violation::at_least("length of output", n, args.output.len())?;
    crate::fused::check_optional(&args.addend, "length of addend", n)
}

macro_rules! totals {
    ($t:ident) => {
        crate::kernels! {
            family DenseTotals<$t>, "fused";
            args TotalArgs<'a, $t>;
            variant TotalVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            concat!("dense_totals_", stringify!($t)), TotalVariant => total::<_, $t>;
        }
    };
}

totals!(f32);
totals!(f64);
