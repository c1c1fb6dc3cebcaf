//! Rows of several tiles: see [`balanced`](crate::fused::balanced).

use crate::cta::{Cache, Cta, WARP};
use crate::fused::Forward;
use crate::fused::balanced::{BalancedArgs, Items, TILE, Tile};
use crate::fused::sparse::{Weigh, write_row};
use crate::scalar::Real;
use crate::verbs::{FULL, global_warp, global_warps, lane, sum_lanes};

/// Tiles of a row that one thread adds up.
const SHORT: u32 = 16;

/// A row that ends in a tile and began in an earlier one.
#[derive(Clone, Copy)]
struct Span {
    row: u32,
    /// The first tile that has some of it.
    first: u32,
    /// The one in which it ends.
    last: u32,
}

impl Span {
    /// The row whose head tile `last` has, if it has one.
    #[inline(always)]
    fn of<C: Cta, T: Real>(
        cta: &C,
        args: &BalancedArgs<'_, T>,
        items: &Items,
        last: u32,
    ) -> Option<Self> {
        let tile = Tile::read(cta, args, items, last);
        let row = tile.rows[0];
        if tile.is_within_row() {
            return None;
        }
        let begin: u32 = cta.load(args.x.offsets, row as usize, Cache::Keep);
        if begin >= tile.nonzeros[0] {
            return None;
        }
        // The row's first nonzero is item number begin + row.
        let first = ((begin as u64 + row as u64) / TILE as u64) as u32;
        Some(Span { row, first, last })
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.last - self.first
    }
}

/// [`BalancedVariant::Finish`](crate::fused::BalancedVariant::Finish).
#[inline(always)]
pub(crate) fn finish<C: Cta, T: Real>(cta: &C, args: &BalancedArgs<'_, T>) {
    let items = Items::of(args);
    let mut step = Weigh::<T, Forward>::new(cta, &args.x);
    let mut base = global_warp(cta) * WARP;
    while base < items.tiles {
        let span = Span::of(cta, args, &items, base + lane(cta));
        if let Some(span) = span.filter(|span| span.len() <= SHORT) {
            // Both are on their way at once.
            let head = cta.read(args.heads, span.last as usize);
            let carries = sum_carries(cta, args, span, (0, 1));
            write_row(cta, &args.x, &mut step, span.row, carries + head);
        }
        let is_long = span.is_some_and(|span| span.len() > SHORT);
        let mut long = cta.ballot(is_long, FULL);
        while long != 0 {
            let tile = base + long.trailing_zeros();
            if let Some(span) = Span::of(cta, args, &items, tile) {
                let own = sum_carries(cta, args, span, (lane(cta), WARP));
                let carries = sum_lanes::<C, T, WARP>(cta, own);
                if lane(cta) == 0 {
                    let head = cta.read(args.heads, span.last as usize);
                    write_row(cta, &args.x, &mut step, span.row, carries + head);
                }
            }
            long &= long - 1;
        }
        base += global_warps(cta) * WARP;
    }
}

/// Every `stride`-th carry of a span, from the `first` on.
#[inline(always)]
fn sum_carries<C: Cta, T: Real>(
    cta: &C,
    args: &BalancedArgs<'_, T>,
    span: Span,
    (first, stride): (u32, u32),
) -> T {
    let mut sum = T::ZERO;
    let mut tile = span.first + first;
    while tile < span.last {
        sum = sum + cta.read(args.carries, tile as usize);
        tile += stride;
    }
    sum
}
