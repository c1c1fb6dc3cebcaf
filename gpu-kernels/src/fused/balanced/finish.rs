//! Rows of several tiles: see [`balanced`](crate::fused::balanced).

use crate::cta::{Cache, Cta, Shuffle, WARP};
use crate::fused::Forward;
use crate::fused::balanced::{BalancedArgs, Items, TILE, Tile};
use crate::fused::sparse::{Weigh, write_row};
use crate::scalar::Real;
use crate::verbs::{FULL, global_warp, global_warps, lane, sum_lanes};

/// Tiles of a row that one thread adds up.
const SHORT: u32 = 16;

/// A row of several tiles.
#[derive(Clone, Copy)]
pub(super) struct Span {
    row: u32,
    /// The first tile that has some of it.
    first: u32,
    /// The one in which it ends.
    last: u32,
}

/// Where a tile may cut a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    Start,
    End,
}

impl Span {
    /// The row that a tile's edge cuts, if it cuts one. A row that has both edges of a tile is that of its end.
    #[inline(always)]
    pub fn of<C: Cta, T: Real>(
        cta: &C,
        args: &BalancedArgs<'_, T>,
        (tile, edge): (&Tile, Edge),
    ) -> Option<Self> {
        let (row, cut) = tile.edge(edge);
        let is_other = edge == Edge::Start && tile.is_within_row();
        if is_other || row >= args.x.rows {
            return None;
        }
        let [begin, end] =
            [0, 1].map(|i| -> u32 { cta.load(args.x.offsets, row as usize + i, Cache::Keep) });
        // The row's first nonzero is item number begin + row, its end number end + row.
        let [first, last] = [begin, end].map(|i| ((i as u64 + row as u64) / TILE as u64) as u32);
        (begin < cut).then_some(Span { row, first, last })
    }

    /// Tiles that have some of it, but for the one in which it ends.
    #[inline(always)]
    fn len(&self) -> u32 {
        self.last - self.first
    }

    /// That of another lane.
    #[inline(always)]
    fn of_lane<C: Cta>(span: Option<Self>, cta: &C, of: u32) -> Self {
        let own = span.map_or([0; 3], |span| [span.row, span.first, span.last]);
        let [row, first, last] =
            own.map(|field| cta.shuffle(field, Shuffle::Index(of), WARP, FULL));
        Span { row, first, last }
    }
}

/// [`BalancedVariant::Finish`](crate::fused::BalancedVariant::Finish).
#[inline(always)]
pub(crate) fn finish<C: Cta, T: Real>(cta: &C, args: &BalancedArgs<'_, T>) {
    let items = Items::of(args);
    let mut step = Weigh::<T, Forward>::new(cta, &args.x);
    let mut base = global_warp(cta) * WARP;
    while base < items.tiles {
        let tile = Tile::read(cta, args, &items, base + lane(cta));
        add_up(
            cta,
            args,
            (&mut step, Span::of(cta, args, (&tile, Edge::Start))),
        );
        base += global_warps(cta) * WARP;
    }
}

/// Draws a ticket for each of the lanes' rows, and adds up those of which all tiles have drawn one: tiles that have summed what
/// they have of a row, whichever is the last. The whole warp calls, behind a barrier of the block.
#[inline(always)]
pub(super) fn join<C: Cta, T: Real>(
    cta: &C,
    args: &BalancedArgs<'_, T>,
    (step, span): (&mut Weigh<'_, '_, T, Forward>, Option<Span>),
) {
    let is_complete =
        |span: &Span| cta.ticket(args.tickets, span.last as usize, span.len()) == span.len();
    let complete = span.filter(is_complete);
    cta.sync_warp();
    add_up(cta, args, (step, complete));
}

/// Writes the lanes' rows, from what their tiles have of them; the whole warp calls.
#[inline(always)]
fn add_up<C: Cta, T: Real>(
    cta: &C,
    args: &BalancedArgs<'_, T>,
    (step, span): (&mut Weigh<'_, '_, T, Forward>, Option<Span>),
) {
    if let Some(span) = span.filter(|span| span.len() <= SHORT) {
        // Both are on their way at once.
        let head = cta.read(args.heads, span.last as usize);
        let carries = sum_carries(cta, args, span, (0, 1));
        write_row(cta, &args.x, step, span.row, carries + head);
    }
    let is_long = span.is_some_and(|span| span.len() > SHORT);
    let mut long = cta.ballot(is_long, FULL);
    while long != 0 {
        let span = Span::of_lane(span, cta, long.trailing_zeros());
        let own = sum_carries(cta, args, span, (lane(cta), WARP));
        let carries = sum_lanes::<C, T, WARP>(cta, own);
        if lane(cta) == 0 {
            let head = cta.read(args.heads, span.last as usize);
            write_row(cta, &args.x, step, span.row, carries + head);
        }
        long &= long - 1;
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
