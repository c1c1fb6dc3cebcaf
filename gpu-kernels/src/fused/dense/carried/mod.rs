//! Dense X (row-major) whose rows come one block after the other: sums in an order, taken up where the block before left them.
//!
//! Formula: as [`crate::fused::dense`], [`Product::Fused`] and
//! [`Product::Transposed`], in the order of a [`DenseOrder`] over all rows, wherever
//! blocks of them end. The bits are those of the kernels that read all rows at once.
//!
//! Mapping: the order is a number of arguments instead of a body for each: threads stand in for those of the kernel whose
//! order it is. What each of them has of w, in registers there, lies in global memory between blocks, the threads of a chunk
//! side by side. A block of threads takes a chunk at a time and adds the rows of this block of X that are the chunk's, up to
//! `MOST_ROWS` of a team before it writes its part of w back. [`CarriedVariant::Fold`] adds up what the teams and groups
//! of a chunk have, as the kernel does at its end; [`DenseTotals`](crate::fused::DenseTotals) does the rest.
//!
//! A row is read twice, from the L2 cache the second time, and so is its part of w read and written there: a fraction of
//! what a kernel with registers reaches, and many times what a link brings.
//!
//! Shared memory: [`SCRATCH`] elements. Result: the threads' sums, or the chunks'. Guarantees: the same bits whatever the
//! grid, and however rows are cut.
//!
//! Source: ours.

mod add;
mod fold;

use crate::cta::WARP;
use crate::fused::dense::DenseArgs;
use crate::fused::dense::order::DenseOrder;
use crate::fused::{Held, Product, TeamSize};
use crate::memory::Out;
use crate::scalar::Real;
use crate::table::{Launch, Violation};

/// The family of sums that are carried from block to block.
pub struct DenseCarried<T>(core::marker::PhantomData<T>);

/// Rows of a team at a time, at most.
const MOST_ROWS: usize = 8;
/// Warps of a block that share a row, at most.
const MOST_WARPS: u32 = 8;
/// Elements of shared memory: warps' sums of a row, for two turns.
pub const SCRATCH: u32 = 2 * MOST_WARPS * MOST_ROWS as u32;

/// A [`DenseOrder`] as kernels take it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CarriedOrder {
    /// Threads of a block in which the order is defined.
    pub threads: u32,
    /// Lanes that share a row; 0 for all threads of a block.
    pub lanes: u32,
    /// Packs of a row that a thread has.
    pub packs: u32,
    /// Rows of a team that follow one another.
    pub rows: u32,
    /// Parts into which rows are shared out.
    pub chunks: u32,
    /// Whether rows are multiplied by y: [`Product::Fused`].
    pub dots: u32,
    /// Whether elements of a pack are added up by themselves: [`Held::Ring`].
    pub is_ring: u32,
    /// Whether rows past the last one count as rows of zeros as long as their block has begun: [`Held::Tiles`].
    pub is_tiles: u32,
}

impl CarriedOrder {
    /// The order of a product; none for [`Product::Forward`], whose rows are independent.
    pub fn of(order: &DenseOrder) -> Option<CarriedOrder> {
        let threads = order.threads?;
        Some(CarriedOrder {
            threads,
            lanes: match order.team {
                TeamSize::Lanes(lanes) => lanes,
                TeamSize::Block => 0,
            },
            packs: order.tl / order.width,
            rows: match order.held {
                Held::Ring => 1,
                _ => order.rows,
            },
            chunks: order.chunks,
            dots: u32::from(order.product == Product::Fused),
            is_ring: u32::from(order.held == Held::Ring),
            is_tiles: u32::from(order.held == Held::Tiles),
        })
    }

    const fn teams(&self) -> u32 {
        match self.lanes {
            0 => 1,
            lanes => WARP / lanes,
        }
    }

    const fn groups(&self) -> u32 {
        match self.lanes {
            0 => 1,
            _ => self.threads / WARP,
        }
    }

    /// Threads that share a row.
    const fn size(&self) -> u32 {
        match self.lanes {
            0 => self.threads,
            lanes => lanes,
        }
    }

    /// Number of a thread's pack in its panel: packs of a row take turns, those of tiles follow one another in a thread.
    const fn pack(&self, k: u32, rank: u32) -> u32 {
        match self.is_tiles {
            0 => k * self.size() + rank,
            _ => rank * self.packs + k,
        }
    }

    const fn group_rows(&self) -> u64 {
        self.rows as u64 * self.teams() as u64
    }

    /// Rows that a chunk takes before those of the next follow.
    pub const fn unit_rows(&self) -> u64 {
        self.group_rows() * self.groups() as u64
    }

    /// Panels into which n columns are cut, of packs of `width` elements.
    const fn panels(&self, cols: u32, width: u32) -> u32 {
        let panels = cols.div_ceil(self.size() * self.packs * width);
        if panels == 0 { 1 } else { panels }
    }

    /// Elements that all threads of all chunks have of w, of n columns in packs of `width` elements.
    pub const fn state_len(&self, cols: u32, width: u32) -> u64 {
        let of_chunk = self.threads as u64 * self.packs as u64 * width as u64;
        self.chunks as u64 * self.panels(cols, width) as u64 * of_chunk
    }
}

/// Arguments of a block of rows, and of what comes after the last.
#[repr(C)]
pub struct CarriedArgs<'a, T> {
    /// The block: its rows, and the parts of vectors that are theirs. `chunks`, `addend`, `output`, `alpha` and `beta` are
    /// ignored.
    pub x: DenseArgs<'a, T>,
    /// The order over all rows.
    pub order: CarriedOrder,
    /// Rows before these.
    pub first_row: u64,
    /// 1 where no row follows.
    pub is_last: u32,
    /// What threads have of w: [`CarriedOrder::state_len`] elements.
    pub state: Out<'a, T>,
    /// Chunks × n elements, for [`CarriedVariant::Fold`].
    pub sums: Out<'a, T>,
}

impl<T: Copy> Clone for CarriedArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for CarriedArgs<'_, T> {}

/// What distinguishes the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CarriedVariant {
    /// Adds the rows of a block, with packs of this many elements. The first block of rows makes the sums.
    Add(u32),
    /// Adds up what the threads of each chunk have, of packs of this many elements.
    Fold(u32),
}

impl CarriedVariant {
    const fn width(&self) -> u32 {
        match self {
            CarriedVariant::Add(width) | CarriedVariant::Fold(width) => *width,
        }
    }
}

fn check<T: Real>(
    variant: &CarriedVariant,
    launch: &Launch,
    args: &CarriedArgs<'_, T>,
) -> Result<(), Violation> {
    let (order, x) = (&args.order, &args.x);
    let (m, n, width) = (x.rows as u64, x.cols as u64, variant.width());
    let lanes = order.lanes;
    let is_team = lanes == 0 || lanes.is_power_of_two() && lanes <= WARP;
    Violation::equal("whether lanes are a team", 1, u64::from(is_team))?;
    Violation::at_least("chunks", 1, order.chunks as u64)?;
    Violation::at_least("packs", 1, order.packs as u64)?;
    Violation::at_most("columns", crate::fused::dense::MAX_COLUMNS as u64, n)?;
    let state = order.state_len(x.cols, width);
    Violation::at_least("length of the state", state, args.state.len())?;
    if let CarriedVariant::Fold(_) = variant {
        Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
        let sums = order.chunks as u64 * n;
        return Violation::at_least("length of the chunks' sums", sums, args.sums.len());
    }
    Violation::equal("block", order.threads as u64, launch.block as u64)?;
    let most = if lanes == 0 { MOST_WARPS * WARP } else { 1_024 };
    Violation::at_most("block", most as u64, launch.block as u64)?;
    Violation::at_most("rows of a team", MOST_ROWS as u64, order.rows as u64)?;
    let shared = SCRATCH as u64 * T::SIZE as u64;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    Violation::at_least("leading dimension", n.next_multiple_of(width as u64), x.ld)?;
    Violation::multiple_of("leading dimension", width as u64, x.ld.max(1))?;
    Violation::at_least("length of x", m.saturating_mul(x.ld), x.x.len())?;
    let input = if order.dots != 0 { n } else { m };
    Violation::at_least("length of input", input, x.input.len())?;
    if order.dots != 0 {
        let panels = order.panels(x.cols, width) as u64;
        Violation::at_most("panels of rows that are multiplied", 1, panels)?;
    }
    crate::fused::check_optional(&x.weights, "length of weights", m)?;
    crate::fused::check_optional(&x.shift, "length of shift", 1)
}

macro_rules! carried {
    ($t:ident: $($width:literal)*) => {
        crate::kernels! {
            family DenseCarried<$t>, "fused";
            args CarriedArgs<'a, $t>;
            variant CarriedVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            $( concat!("dense_carried_", stringify!($t), "_w", $width), CarriedVariant::Add($width)
                => add::add::<_, $t, [$t; $width]>; )*
            $( concat!("dense_carried_", stringify!($t), "_fold_w", $width), CarriedVariant::Fold($width)
                => fold::fold::<_, $t, [$t; $width]>; )*
        }
    };
}

carried!(f32: 1 2 4);
carried!(f64: 1 2);
