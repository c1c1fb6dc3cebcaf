//! Sparse X (CSR): every warp has an even share of the entries, however they are spread over rows and columns.
//!
//! Formula: `w += α · Xᵀ( v ⊙ (X·y − s) )` and `w += α · Xᵀ( v ⊙ p )`; w holds β·z (or zero) before.
//!
//! Mapping: the ends of rows and the entries, in the order in which they come, are cut into as many equal shares as there are
//! warps. A warp walks its share in *tiles* of up to [`TILE`] entries of up to a warp of rows: lane l has entries l, l + 32, …
//! of a tile, whatever their row, in registers. Of products with y a share is whole rows, those that end in it, and so is a
//! tile; a row that is longer than a tile is walked twice. `Xᵀ·p` cuts rows where shares and tiles end, so that nothing is
//! uneven.
//!
//! Entries times elements of y go to shared memory, where a power of two of lanes adds up each row: as many as leave every
//! row of the tile its own. Rows that would keep the others waiting are added up by the whole warp. The factors of rows come back
//! the same way, each at the places of its entries.
//!
//! Sums of columns are all in shared memory, those of a window (below), or those of frequent columns are: see [`sums`].
//!
//! Additions to a w that is larger than L2 wait for memory, twice each. So a launch of `Xᵀ·p` adds to a *window* of columns: one
//! for each walks X as often, and reading entries in order costs less than such additions. Windows of as many columns as shared
//! memory has sums for cost less than additions to L2, too, where a few are enough. A loop over windows in one launch does
//! not do: blocks drift apart, and two windows want L2 (8,000,000 × 20,000,000, 28 a row, f32, on an H200: 8.6 ms at once, 4.5 over
//! four windows in a loop, 3.4 over three in a launch each).
//!
//! What did not help: entries of the next tile on their way while one is worked on (`Xᵀ·p`, no register more than a block of as many
//! threads has). 80 million entries take 300 µs with 40,000 columns of f32 on an H200 (294 before), 867 in f64 in two windows (842), 1,167
//! in fixed point in three (1,073): what waits is not for memory.
//!
//! Shared memory: that of the sums, then [`TILE`] elements for each warp. Result: in w when the kernel has ended. Guarantees: no
//! two runs need give the same bits, as atomics add in any order.
//!
//! Source: cutting the merged list of ends and entries is that of Merrill and Garland (SC 2016), as in
//! [`balanced`](crate::fused::balanced).

pub(in crate::fused) mod rows;
mod share;
pub mod sums;
mod table;
pub(in crate::fused) mod tile;
mod walk;

pub use table::most_threads;

use crate::cta::WARP;
use crate::fused::{Product, SparseArgs};
use crate::memory::In;
use crate::table::Violation;

/// Entries of a tile that a lane has.
pub const PER_LANE: u32 = 8;
/// Entries of a tile, at most.
pub const TILE: u32 = PER_LANE * WARP;

/// The family of sparse products in even shares.
pub struct Even<T>(core::marker::PhantomData<T>);

/// Arguments of every entry.
#[repr(C)]
pub struct EvenArgs<'a, T> {
    /// X, and y or p as `input`.
    pub x: SparseArgs<'a, T>,
    /// For [`Frequent`](EvenPlace::Frequent): the table of frequent columns, see [`sums`].
    pub keys: In<'a, u32>,
    /// The multiplier of its hash.
    pub multiplier: u32,
    /// The columns that `Xᵀ·p` adds to; products with y add to all.
    pub window: Window,
}

impl<T: Copy> Clone for EvenArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for EvenArgs<'_, T> {}

/// Some columns that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Window {
    /// The first.
    pub first: u32,
    /// How many there are.
    pub columns: u32,
}

impl Window {
    /// Those of a matrix of `columns`.
    pub const fn all(columns: u32) -> Self {
        Window { first: 0, columns }
    }

    /// Those that a product adds to: products with y, which have `DOTS`, add to all of `columns`.
    #[inline(always)]
    pub(in crate::fused) fn of_product<const DOTS: bool>(self, columns: u32) -> Self {
        if DOTS { Window::all(columns) } else { self }
    }

    /// How many columns a launch adds to over a matrix of `columns`, which have to have the window.
    pub(in crate::fused) fn checked(
        &self,
        product: Product,
        columns: u32,
    ) -> Result<u32, Violation> {
        let end = u64::from(self.first) + u64::from(self.columns);
        Violation::at_most("the window's last column", u64::from(columns), end)?;
        Ok(match product {
            Product::Transposed => self.columns,
            _ => columns,
        })
    }

    #[inline(always)]
    fn has(&self, column: u32) -> bool {
        column.wrapping_sub(self.first) < self.columns
    }
}

/// Where sums of columns are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EvenPlace {
    /// All in the block's shared memory.
    Shared,
    /// Those of frequent columns in the block's shared memory, the others in w itself.
    Frequent,
}

/// What distinguishes entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EvenVariant {
    /// What is computed: anything but [`Product::Forward`], which adds nothing to w.
    pub product: Product,
    /// Where sums are.
    pub place: EvenPlace,
}
