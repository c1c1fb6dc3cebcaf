//! f64 products on tensor cores, which round each product and addition once, as a fused multiply-add does.
//!
//! Mapping: a warp has 64 × 32 elements as 4 × 4 products of 16 × 8; warps as many as make the tile, 2 × 4 or 1 × 4. What
//! the instruction calls step of k, row, and column may be any as long as A, B and C agree: see [`side`](super::side). Rows
//! 2g and 2g + 1 of each 16 are its rows g and g + 8, columns 2g and 2g + 1 of each 16 are column g of two products, so a
//! lane has four neighbours of each of its rows of C. There is one loop for each
//! arrangement of A and B, without branches where the tile is whole.
//!
//! A panel of a warp, 16 steps of k, is 16 products of 64 cycles of a quarter of an SM, and 12 KiB read of shared memory:
//! 48 bytes in a cycle of an SM, of 128.
//!
//! Shared bytes: [`shared_elements`] elements. Determinism: the same bits for the same launch.
//! Source: the arrangement of copies and products is that of CUTLASS.

use super::MatmulArgs;
use super::feed::{Bounds, Feed, Strip};
use super::panel::DEPTH;
use super::pipeline::Piece;
use super::side::{Across, Along, Side, TURN, WideFragment, panel_elements};
use super::target::Target;
use crate::cta::{Cta, Shared, WARP};

/// Rows of C that a warp computes.
const WARP_ROWS: u32 = 64;
/// Columns of C that a warp computes.
const WARP_COLUMNS: u32 = 32;
/// Products along the rows of a warp, of [`SPAN`] rows each.
const DOWN: usize = 4;
/// Pairs of products along the columns of a warp, of [`SPAN`] columns each.
const PAIRS: usize = 2;
/// Rows of a product, and columns of two.
const SPAN: u32 = 16;
/// Panels of each operand in shared memory: one that is multiplied, and two that are copied.
const STAGES: u32 = 3;

/// The sums of a lane: four elements of each product, `[down][pair][of the pair]`.
type Sums = [[[[f64; 4]; 2]; PAIRS]; DOWN];

/// Threads of a block with a tile of `rows` × `columns`.
pub const fn threads(rows: u32, columns: u32) -> u32 {
    rows / WARP_ROWS * (columns / WARP_COLUMNS) * WARP
}

/// Elements of shared memory of such a block.
pub const fn shared_elements(rows: u32, columns: u32) -> u32 {
    STAGES * (panel_elements(rows) + panel_elements(columns))
}

/// An arrangement of f64.
trait SideOf: Side<f64, Fragment = WideFragment> {}
impl<S: Side<f64, Fragment = WideFragment>> SideOf for S {}

type FeedOf<'a, S, const TILE: u32, const THREADS: u32> = Feed<'a, f64, S, TILE, THREADS>;

/// The panel of A of a stage.
#[inline(always)]
fn panel_a<const M: u32, const N: u32>(stage: u32) -> Shared<f64> {
    let first = stage * (panel_elements(M) + panel_elements(N));
    Shared::at(first * 8, panel_elements(M))
}

/// The panel of B of a stage.
#[inline(always)]
fn panel_b<const M: u32, const N: u32>(stage: u32) -> Shared<f64> {
    let first = stage * (panel_elements(M) + panel_elements(N)) + panel_elements(M);
    Shared::at(first * 8, panel_elements(N))
}

/// What a thread copies of both operands.
struct Feeds<'a, A, B, const M: u32, const N: u32, const THREADS: u32> {
    a: FeedOf<'a, A, M, THREADS>,
    b: FeedOf<'a, B, N, THREADS>,
}

impl<A: SideOf, B: SideOf, const M: u32, const N: u32, const THREADS: u32>
    Feeds<'_, A, B, M, N, THREADS>
{
    /// Begins to copy the next panels.
    #[inline(always)]
    fn copy<C: Cta>(&mut self, cta: &C, stage: u32, bounds: Bounds) {
        self.a.copy(cta, panel_a::<M, N>(stage), bounds);
        self.b.copy(cta, panel_b::<M, N>(stage), bounds);
        cta.end_copies();
    }
}

/// Where a lane is in a tile of `N` columns.
#[derive(Clone, Copy)]
struct Spot<const N: u32> {
    /// The first row of the warp.
    row: u32,
    /// The first column.
    column: u32,
    /// The number of the lane's quad.
    quad: u32,
    /// Its turn in the quad.
    turn: u32,
}

impl<const N: u32> Spot<N> {
    #[inline(always)]
    fn of(thread: u32) -> Self {
        let (warp, lane, right) = (thread / WARP, thread % WARP, N / WARP_COLUMNS);
        Spot {
            row: warp / right * WARP_ROWS,
            column: warp % right * WARP_COLUMNS,
            quad: lane / 4,
            turn: lane % 4,
        }
    }
}

/// What a lane computes for its warp, in a tile of `M` × `N`.
struct Lane<const M: u32, const N: u32> {
    sums: Sums,
}

impl<const M: u32, const N: u32> Lane<M, N> {
    /// Multiplies panel by panel.
    #[inline(always)]
    fn each_panel<C: Cta, A: SideOf, B: SideOf, const THREADS: u32>(
        &mut self,
        cta: &C,
        feeds: &mut Feeds<'_, A, B, M, N, THREADS>,
        steps: u32,
        bounds: Bounds,
    ) {
        for stage in 0..STAGES - 1 {
            feeds.copy(cta, stage, bounds);
        }
        let spot = Spot::<N>::of(cta.thread());
        let read_a = |stage: u32, down: usize| {
            let row = spot.row + down as u32 * SPAN + 2 * spot.quad;
            A::read(cta, panel_a::<M, N>(stage), M, row, spot.turn)
        };
        let read_b = |stage: u32, pair: usize| {
            let column = spot.column + pair as u32 * SPAN + 2 * spot.quad;
            B::read(cta, panel_b::<M, N>(stage), N, column, spot.turn)
        };
        // Behind it all have their copies of the next panel, and have read the one before.
        let arrive = || {
            cta.copies_done::<{ STAGES - 2 }>();
            cta.sync();
        };
        arrive();
        let (mut stage, mut free) = (0, STAGES - 1);
        let (mut a, mut first_b) = (read_a(stage, 0), read_b(stage, 0));
        for _ in 0..steps.div_ceil(DEPTH) {
            // What checks needs the registers of B's elements.
            if bounds == Bounds::Checked {
                feeds.copy(cta, free, bounds);
            }
            let b = [first_b, read_b(stage, 1)];
            for down in 0..DOWN - 1 {
                let next = read_a(stage, down + 1);
                multiply(cta, &a, &b, &mut self.sums[down]);
                // Tensor cores have work meanwhile.
                if down == 0 && bounds == Bounds::Whole {
                    feeds.copy(cta, free, bounds);
                }
                a = next;
            }
            free = stage;
            stage = if stage + 1 == STAGES { 0 } else { stage + 1 };
            // The next panel's first elements come while the last rows of this one are multiplied. Behind the last panel is
            // what was copied then, which nobody takes.
            arrive();
            let next = read_a(stage, 0);
            first_b = read_b(stage, 0);
            multiply(cta, &a, &b, &mut self.sums[DOWN - 1]);
            a = next;
        }
    }

    #[inline(always)]
    fn store<C: Cta>(&self, cta: &C, args: &MatmulArgs<'_, f64>) {
        // Found again: through the loop they would take registers of the sums.
        let piece = Piece::of_block(cta.fresh(cta.block()), args, (M, N));
        let spot = Spot::<N>::of(cta.fresh(cta.thread()));
        let target = Target::of(args, &piece, (M, N));
        for down in 0..DOWN {
            for upper in 0..2 {
                let row = spot.row + down as u32 * SPAN + 2 * spot.quad + upper as u32;
                for pair in 0..PAIRS {
                    let [even, odd] = self.sums[down][pair];
                    let column = spot.column + pair as u32 * SPAN + 4 * spot.turn;
                    let at = (piece.row + row, piece.column + column);
                    let (x, y) = (2 * upper, 2 * upper + 1);
                    target.write_four(cta, args, at, [even[x], odd[x], even[y], odd[y]]);
                }
            }
        }
    }
}

/// The whole product of one tile of `M` × `N` elements.
#[inline(always)]
pub fn tensor_f64<C: Cta, const M: u32, const N: u32, const THREADS: u32>(
    cta: &C,
    args: &MatmulArgs<'_, f64>,
) {
    let piece = Piece::of(cta, args, (M, N));
    let mut lane = Lane::<M, N> {
        sums: Sums::default(),
    };
    match (args.a_transposed, args.b_transposed) {
        (0, 0) => tile::<C, Along, Across, M, N, THREADS>(cta, args, &piece, &mut lane),
        (0, _) => tile::<C, Along, Along, M, N, THREADS>(cta, args, &piece, &mut lane),
        (_, 0) => tile::<C, Across, Across, M, N, THREADS>(cta, args, &piece, &mut lane),
        _ => tile::<C, Across, Along, M, N, THREADS>(cta, args, &piece, &mut lane),
    }
    lane.store(cta, args);
}

/// A tile of operands that lie so.
#[inline(always)]
fn tile<C: Cta, A: SideOf, B: SideOf, const M: u32, const N: u32, const THREADS: u32>(
    cta: &C,
    args: &MatmulArgs<'_, f64>,
    piece: &Piece,
    lane: &mut Lane<M, N>,
) {
    let of_a = Strip::of::<A>((args.a, args.lda), (args.m, args.k), piece.row);
    let of_b = Strip::of::<B>((args.b, args.ldb), (args.n, args.k), piece.column);
    let steps = (piece.begin, piece.end);
    let mut feeds = Feeds::<A, B, M, N, THREADS> {
        a: Feed::new(cta, of_a, steps),
        b: Feed::new(cta, of_b, steps),
    };
    let steps = piece.end - piece.begin;
    if feeds.a.is_whole(1) && feeds.b.is_whole(1) {
        lane.each_panel(cta, &mut feeds, steps, Bounds::Whole);
    } else {
        lane.each_panel(cta, &mut feeds, steps, Bounds::Checked);
    }
}

/// Adds the products of 16 rows with all columns of the warp.
#[inline(always)]
fn multiply<C: Cta>(
    cta: &C,
    a: &WideFragment,
    b: &[WideFragment; PAIRS],
    sums: &mut [[[f64; 4]; 2]; PAIRS],
) {
    let left: [f64; 2 * TURN] = core::array::from_fn(|i| a[i / 2][i % 2]);
    for pair in 0..PAIRS {
        for of_pair in 0..2 {
            let right: [f64; TURN] = core::array::from_fn(|k| b[pair][k][of_pair]);
            let sum = &mut sums[pair][of_pair];
            *sum = cta.multiply_f64(left, right, *sum);
        }
    }
}
