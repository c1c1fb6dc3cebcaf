//! f32 products on tensor cores: each number as a sum of two TF32 numbers.
//!
//! x = h + l with h the nearest TF32 number (10 bits after the point) and l what is left, of which the tensor core
//! takes the next 10 bits. Then `a·b = aₕ·bₕ + aₕ·bₗ + aₗ·bₕ` up to 2⁻²² of itself. Tensor cores add without rounding to
//! nearest, which would cost digits in long sums; so each group of two panels, 32 steps of k, begins with zero and is
//! added to the sum by an ordinary addition.
//!
//! Infinite and NaN elements of A and B give NaN; elements beyond 3.4·10³⁸ · (1 − 2⁻¹²) overflow.
//!
//! Mapping: 4 warps beside one another, each with 64 × 32 elements as 4 × 4 products of 16 × 8. What the instruction calls
//! step t of k, and row or column g, may be any as long as A, B and C agree: see [`side`](super::side), which also says
//! how panels lie in shared memory. There is one loop for each arrangement of A and B, without branches where the tile
//! is whole.
//!
//! Shared bytes: [`SHARED_ELEMENTS`] elements. Determinism: the same bits for the same launch.
//!
//! What bounds it, measured on an H200: a product of 16 × 8 × 8 takes a quarter of an SM 6 cycles, and nearly every other
//! instruction beside it, for want of register reads, 1.1 to 1.4 more. So what counts is the number of other
//! instructions: 274 in all for the 96 products of a warp's panel make 70 TFLOP/s at 4,096³, where the limit of
//! the products alone is 107. Rounding by one instruction instead of two gave 4 %, adding to the sum every second
//! panel instead of every one 4 %, a loop without branches 5 %. What did *not* help: three blocks for an SM (168
//! registers), reading a panel's elements while the one before is multiplied.
//!
//! Why not 100 TFLOP/s: that leaves room for 34 other instructions beside the 96 products of a panel. Of the 178 that are
//! there, 96 split elements in two (64 of them those of A, by each of the four warps), 32 add to the sums, 12 read shared
//! memory, the rest copies and counts. By the same figures, if each warp split a quarter of A for all four: 144 of them, 74
//! TFLOP/s; if a launch before split both operands: 92, as twice as much is copied and read, 79 with that launch; warps of
//! 64 × 64 elements would need 256 registers for sums alone. [`halves`](super::halves) takes half as many products, of
//! numbers that are packed before; wgmma, which reads shared memory by itself, would need a target of its own, sm_90a.
//!
//! Source: H. Ootomo and R. Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing
//! the FP32 theoretical peak performance", *Int. J. High Perform. Comput. Appl.* 36(4), 2022.

use super::MatmulArgs;
use super::feed::{Bounds, Feed, Strip};
use super::panel::DEPTH;
use super::pipeline::Piece;
use super::side::{Across, Along, Fragment, Side, TURN, panel_elements};
use super::target::Target;
use crate::cta::{Cta, Shared, WARP};

/// Rows of C that a block computes.
pub const ROWS: u32 = 64;
/// Columns of C that a block computes.
pub const COLUMNS: u32 = 128;
/// Threads of a block.
pub const THREADS: u32 = 128;
/// Products along half of the rows of a warp.
const DOWN: usize = 2;
/// Products along the columns of a warp.
pub(super) const RIGHT: usize = 4;
/// Products along a panel: each takes two steps of a lane.
const STEPS: usize = TURN / 2;
/// Rows of half a warp, and its columns: four neighbours for each of eight lanes.
pub(super) const SPAN: u32 = 32;
/// Panels of each operand in shared memory: one that is multiplied, and three that are copied.
const STAGES: u32 = 4;

/// Panels whose products are added up by tensor cores, beginning with zero.
const GROUP: u32 = 2;

/// Elements of shared memory of a block.
pub const SHARED_ELEMENTS: u32 = STAGES * STAGE;
/// Elements of a panel of A and one of B.
const STAGE: u32 = panel_elements(ROWS) + panel_elements(COLUMNS);

/// The sums of a lane: four elements of each product, `[down][right]`.
pub(super) type Sums = [[[f32; 4]; RIGHT]; 2 * DOWN];
/// The factors of B's columns, `[step][right]`.
type FactorsB = [[Split<2>; RIGHT]; STEPS];

/// Numbers as sums of two.
#[derive(Clone, Copy)]
pub(crate) struct Split<const N: usize> {
    pub high: [f32; N],
    pub low: [f32; N],
}

/// The nearest number with 10 bits after the point, and what is left.
#[inline(always)]
pub(crate) fn split<C: Cta, const N: usize>(cta: &C, values: [f32; N]) -> Split<N> {
    let high = values.map(|x| cta.round_tf32(x));
    Split {
        high,
        low: core::array::from_fn(|i| values[i] - high[i]),
    }
}

/// What a lane computes for its warp.
struct Lane {
    /// Its first row in the tile.
    row: u32,
    /// Its first column in the tile, of B's reads.
    column: u32,
    /// Its turn in a quad.
    turn: u32,
    sums: Sums,
}

impl Lane {
    #[inline(always)]
    fn new<C: Cta>(cta: &C) -> Lane {
        let (warp, lane) = (cta.thread() / WARP, cta.thread() % WARP);
        Lane {
            row: lane / 4 * 4,
            column: warp * SPAN + lane / 4 * 4,
            turn: lane % 4,
            sums: Sums::default(),
        }
    }

    /// Multiplies panel by panel.
    #[inline(always)]
    fn each_panel<C: Cta, A: SideOf, B: SideOf>(
        &mut self,
        cta: &C,
        (a, b): (&mut FeedA<'_, A>, &mut FeedB<'_, B>),
        steps: u32,
        bounds: Bounds,
    ) {
        let mut copy = |stage: u32| {
            a.copy(cta, panel_a(stage), bounds);
            b.copy(cta, panel_b(stage), bounds);
            cta.end_copies();
        };
        for stage in 0..STAGES - 1 {
            copy(stage);
        }
        let mut stage = 0;
        for _ in 0..steps.div_ceil(GROUP * DEPTH) {
            let mut products = Sums::default();
            for _ in 0..GROUP {
                cta.copies_done::<{ STAGES - 2 }>();
                cta.sync();
                let halves = [0, SPAN]
                    .map(|down| A::read(cta, panel_a(stage), ROWS, self.row + down, self.turn));
                let b = B::read(cta, panel_b(stage), COLUMNS, self.column, self.turn);
                // All have read the panel before this one: its place is free.
                copy((stage + STAGES - 1) % STAGES);
                multiply(cta, &halves, &factors_b(cta, &b), &mut products);
                stage = (stage + 1) % STAGES;
            }
            add(&mut self.sums, &products);
        }
    }

    #[inline(always)]
    fn store<C: Cta>(&self, cta: &C, args: &MatmulArgs<'_, f32>, piece: &Piece) {
        let target = Target::of(args, piece, (ROWS, COLUMNS));
        let columns = piece.column + self.column / SPAN * SPAN;
        let from = (piece.row + self.row, columns + 8 * self.turn);
        store(cta, args, &target, from, &self.sums);
    }
}

/// An arrangement of f32.
trait SideOf: Side<f32, Fragment = Fragment> {}
impl<S: Side<f32, Fragment = Fragment>> SideOf for S {}

type FeedA<'a, S> = Feed<'a, f32, S, ROWS, THREADS>;
type FeedB<'a, S> = Feed<'a, f32, S, COLUMNS, THREADS>;

#[inline(always)]
fn panel_a(stage: u32) -> Shared<f32> {
    Shared::at(stage * STAGE * 4, panel_elements(ROWS))
}

#[inline(always)]
fn panel_b(stage: u32) -> Shared<f32> {
    let first = stage * STAGE + panel_elements(ROWS);
    Shared::at(first * 4, panel_elements(COLUMNS))
}

/// The whole product of one tile.
#[inline(always)]
pub fn split_tf32<C: Cta>(cta: &C, args: &MatmulArgs<'_, f32>) {
    let piece = Piece::of(cta, args, (ROWS, COLUMNS));
    let mut lane = Lane::new(cta);
    match (args.a_transposed, args.b_transposed) {
        (0, 0) => tile::<C, Along, Across>(cta, args, &piece, &mut lane),
        (0, _) => tile::<C, Along, Along>(cta, args, &piece, &mut lane),
        (_, 0) => tile::<C, Across, Across>(cta, args, &piece, &mut lane),
        _ => tile::<C, Across, Along>(cta, args, &piece, &mut lane),
    }
    lane.store(cta, args, &piece);
}

/// A tile of operands that lie so.
#[inline(always)]
fn tile<C: Cta, A: SideOf, B: SideOf>(
    cta: &C,
    args: &MatmulArgs<'_, f32>,
    piece: &Piece,
    lane: &mut Lane,
) {
    let of_a = Strip::of::<A>((args.a, args.lda), (args.m, args.k), piece.row);
    let of_b = Strip::of::<B>((args.b, args.ldb), (args.n, args.k), piece.column);
    let steps = (piece.begin, piece.end);
    let mut a = FeedA::<A>::new(cta, of_a, steps);
    let mut b = FeedB::<B>::new(cta, of_b, steps);
    let is_whole = a.is_whole(GROUP) && b.is_whole(GROUP);
    let (feeds, steps) = ((&mut a, &mut b), piece.end - piece.begin);
    if is_whole {
        lane.each_panel(cta, feeds, steps, Bounds::Whole);
    } else {
        lane.each_panel(cta, feeds, steps, Bounds::Checked);
    }
}

/// The factors of the rows of product `i` of half a warp.
#[inline(always)]
fn factors_a<C: Cta>(cta: &C, values: &Fragment, i: usize) -> [Split<4>; STEPS] {
    let of = |k: usize, upper: usize| values[k][2 * i + upper];
    core::array::from_fn(|s| {
        let (k, next) = (2 * s, 2 * s + 1);
        split(cta, [of(k, 0), of(k, 1), of(next, 0), of(next, 1)])
    })
}

/// The factors of the columns of all products.
#[inline(always)]
fn factors_b<C: Cta>(cta: &C, values: &Fragment) -> FactorsB {
    core::array::from_fn(|s| {
        core::array::from_fn(|j| split(cta, [values[2 * s][j], values[2 * s + 1][j]]))
    })
}

/// Adds the products of a panel, the small ones first.
#[inline(always)]
fn multiply<C: Cta>(cta: &C, halves: &[Fragment; 2], b: &FactorsB, products: &mut Sums) {
    for down in 0..2 * DOWN {
        let a = factors_a(cta, &halves[down / DOWN], down % DOWN);
        let products = &mut products[down];
        for s in 0..STEPS {
            for j in 0..RIGHT {
                products[j] = cta.multiply_tf32(a[s].low, b[s][j].high, products[j]);
            }
            for j in 0..RIGHT {
                products[j] = cta.multiply_tf32(a[s].high, b[s][j].low, products[j]);
            }
        }
        for s in 0..STEPS {
            for j in 0..RIGHT {
                products[j] = cta.multiply_tf32(a[s].high, b[s][j].high, products[j]);
            }
        }
    }
}

/// Writes the sums of a lane, whose first row and column these are. Product `i`'s rows 0 to 7 are those of eight 2i, its
/// rows 8 to 15 those of eight 2i + 1.
#[inline(always)]
pub(super) fn store<C: Cta>(
    cta: &C,
    args: &MatmulArgs<'_, f32>,
    target: &Target,
    (row, column): (u32, u32),
    sums: &Sums,
) {
    for eight in 0..4 * DOWN {
        let row = row + eight as u32 / 4 * SPAN + eight as u32 % 4;
        for side in 0..2 {
            let element = 2 * (eight % 2) + side;
            let values = core::array::from_fn(|j| sums[eight / 2][j][element]);
            target.write_four(cta, args, (row, column + 4 * side as u32), values);
        }
    }
}

#[inline(always)]
fn add(sums: &mut Sums, products: &Sums) {
    let products = products.as_flattened().as_flattened();
    for (sum, product) in sums
        .as_flattened_mut()
        .as_flattened_mut()
        .iter_mut()
        .zip(products)
    {
        *sum += product;
    }
}
