//! What the reflectors of earlier panels make of 32 other columns, by products on tensor cores, in f32; [`wide`](super::wide) is for f64.
//!
//! For panel after panel V, T of 32 reflectors: Cᵀ −= (CᵀV)·T·Vᵀ. A block has 32 columns C of one matrix, **in registers from
//! the first panel to the last**: what moves is V, once for all that it does to the block's columns. Where the columns are
//! those of the next panel, and all panels before it apply, a matrix of n columns moves n²/64 columns of V, where updates of
//! all later columns behind each panel move 3·n²/64 columns of C and n²/64 of V.
//!
//! | step | what | where |
//! |---|---|---|
//! | 1 | W = CᵀV over the warp's rows ([`times_v`]) | C in registers, V in the warp's part of shared memory |
//! | 2 | the sum of all warps' W ([`sum_warps`]) | shared memory |
//! | 3 | W·T ([`times_t`]), a tile of 16 × 8 for each of eight warps | shared memory |
//! | 4 | Cᵀ −= W·Vᵀ ([`subtract`]) | as step 1 |
//!
//! Mapping: rows in strips of four tiles of eight; warp w of WARPS has strips w and w + WARPS, so that most warps have work
//! until the last panel, and what is read of a column is a line of the cache. Numbers are sums of two TF32 numbers, a product
//! three of the tensor core, as in [`matmul::tensor`](crate::matmul). What an instruction calls step t of k is row 2t of a tile,
//! and t + 4 is row 2t + 1: so the sums of step 4, four elements of Cᵀ for each lane, are the factors of step 1 without a move.
//!
//! Shared memory: V of all warps, their W, the sums, W·T and T; see [`tensor_shared_bytes`]. Arrays of 32 elements a row are
//! [swizzled](place), so that no access has a conflict of banks.
//!
//! Guarantees: the same bits on every run and grid of one device. Errors of a product are 2⁻²² of it. Where of 32 columns that lie
//! together one is below 2⁻⁹⁰ and another is not, those of the small one are 2⁻¹¹ of it. Loops end at numbers that the compiler
//! takes for unknown, and places are computed anew in each step: otherwise addresses fill the registers.
//!
//! Source: H. Ootomo and R. Yokota, as for the product of matrices; registers that are sums and then factors: T. Dao et al.,
//! FlashAttention, 2022.

mod block;
mod steps;
pub(in crate::qr) mod tile;
mod whole;

use super::args::QrArgs;
use crate::cta::{Cta, Shared, WARP};
use crate::verbs::{lane, max_lanes};
use block::Block;
use steps::{show, subtract, sum_warps, times_t, times_v};
pub use tile::{TENSOR_COLUMNS, WIDE_COLUMNS, tensor_tiles};
use whole::whole;

/// Rows of a tile.
const ROWS: u32 = 8;
/// Tiles of a warp, of four neighbours each.
const TILES: usize = 8;
/// Rows of four tiles: a line of the cache for each column.
const STRIP: u32 = 4 * ROWS;
/// Strips of a warp.
const STRIPS: u32 = TILES as u32 / 4;
/// Elements of W, of W·T and of T.
const SQUARE: u32 = TENSOR_COLUMNS * TENSOR_COLUMNS;
/// Elements of the V of a warp.
const OF_V: u32 = TENSOR_COLUMNS * ROWS * TILES as u32;

/// Rows of a block of `warps` warps.
pub const fn tensor_rows(warps: u32) -> u32 {
    warps * ROWS * TILES as u32
}

/// Shared memory of a block of `warps` warps.
pub const fn tensor_shared_bytes(warps: u32) -> u32 {
    (warps * (OF_V + SQUARE) + 3 * SQUARE) * 4
}

/// Four elements of Cᵀ in each tile of 16 columns by 8 rows: `[tile][columns]`.
type Columns = [[[f32; 4]; 2]; TILES];
/// Four elements of W in each tile of 16 columns by 8 reflectors: `[reflectors][columns]`.
type Sums = [[[f32; 4]; 2]; 4];

/// The lane's place in an instruction: lane / 4 and lane mod 4, computed again where they are used.
#[inline(always)]
fn quad<C: Cta>(cta: &C) -> (u32, u32) {
    let lane = cta.fresh(cta.thread()) % WARP;
    (lane / 4, lane % 4)
}

/// Where (row, column) of 32 × 32 elements is: lanes of four rows by eight columns, or of eight rows by four columns or four
/// pairs of them, reach different banks.
#[inline(always)]
const fn place(row: u32, col: u32) -> usize {
    (row * TENSOR_COLUMNS + (col ^ (row & 3) << 3 ^ row & 4)) as usize
}

/// Where (reflector, row) of a warp's V is, likewise.
#[inline(always)]
const fn place_v(p: u32, row: u32) -> usize {
    (p * ROWS * TILES as u32 + (row ^ (p & 3) << 3)) as usize
}

/// The V of a warp: 64 rows for each reflector.
#[inline(always)]
fn of_v<C: Cta>(cta: &C) -> Shared<f32> {
    Shared::at(cta.fresh(cta.thread()) / WARP * OF_V * 4, OF_V)
}

/// W of a warp; behind that of the last one, the sums of all, their product with T, and T.
#[inline(always)]
fn square<const WARPS: u32>(index: u32) -> Shared<f32> {
    Shared::at((WARPS * OF_V + index * SQUARE) * 4, SQUARE)
}

/// Two neighbouring rows of a column of a warp's part.
#[inline(always)]
#[track_caller]
fn read_rows<C: Cta>(cta: &C, at: usize) -> [f32; 2] {
    let pairs = Shared::<u64>::at(of_v(cta).byte(), OF_V / 2);
    let both = cta.shared_read(pairs, at / 2);
    [both as u32, (both >> 32) as u32].map(f32::from_bits)
}

/// Two neighbours, of which the first is even.
#[inline(always)]
#[track_caller]
fn write_two<C: Cta>(cta: &C, to: Shared<f32>, at: usize, [a, b]: [f32; 2]) {
    let pairs = Shared::<u64>::at(to.byte(), to.len() / 2);
    let both = a.to_bits() as u64 | (b.to_bits() as u64) << 32;
    cta.shared_write(pairs, at / 2, both);
}

/// Calls `f` for the lane's pairs of elements, and says where each is in the warp's part of shared memory: of columns `group`
/// and `group` + 8 of 16, rows 2 · `turn` and the next.
#[inline(always)]
#[track_caller]
fn each_two<C: Cta>(cta: &C, mut f: impl FnMut([usize; 3], usize)) {
    let (group, turn) = quad(cta);
    for m in 0..2 {
        for i in 0..TILES {
            for half in 0..2 {
                let col = 16 * m as u32 + group + 8 * half as u32;
                f([m, i, half], place_v(col, i as u32 * ROWS + 2 * turn));
            }
        }
    }
}

/// See the head of the file.
#[inline(always)]
pub fn tensor<C: Cta, const WARPS: u32, const THREADS: u32>(cta: &C, args: &QrArgs<'_, f32>) {
    // Registers for 64 elements of C, 32 of W and the factors of a product.
    if WARPS == 8 {
        cta.launch_bounds::<THREADS, 2>();
    } else {
        cta.launch_bounds::<THREADS, 1>();
    }
    let block = Block::<WARPS>::of(cta, args);
    let (mut panel, until) = (block.since, block.until);
    if block.cols == 0 || block.rows == 0 || panel >= until {
        return;
    }
    if block.is_whole(args) {
        whole(cta, args, &block);
        return;
    }
    let mut columns = block.read(cta, args);
    let down = enlarge::<C, WARPS>(cta, &mut columns);
    let block = || Block::<WARPS>::of(cta, args);
    block().stage(cta, args, panel);
    // A loop that ends below keeps C in one set of registers.
    loop {
        cta.copies_done::<0>();
        cta.sync_warp();
        let tiles = block().tiles(panel);
        one_panel::<C, WARPS>(cta, &mut columns, tiles);
        panel += TENSOR_COLUMNS;
        if panel >= until {
            break;
        }
        block().stage(cta, args, panel);
    }
    block().write(cta, args, (&columns, down));
}

/// Columns whose largest magnitude is below this, 2⁻⁹⁰, are multiplied by 2⁶⁴: what a TF32 number leaves of a smaller one is
/// subnormal, of which the tensor core drops most digits.
const SMALL: u32 = (127 - 90) << 23;
const UP: f32 = 18_446_744_073_709_551_616.0;

/// Brings small columns in range, and says what brings them back.
#[inline(always)]
#[track_caller]
fn enlarge<C: Cta, const WARPS: u32>(cta: &C, columns: &mut Columns) -> f32 {
    let mut largest = 0;
    let bits = |x: f32| x.to_bits() & 0x7fff_ffff;
    for [low, high] in columns.iter() {
        for e in 0..4 {
            largest = largest.max(bits(low[e])).max(bits(high[e]));
        }
    }
    let largest = max_lanes(cta, largest);
    // Where W·T will be, behind two barriers.
    let of_warps = Shared::<u32>::at(square::<WARPS>(WARPS + 1).byte(), WARPS);
    if lane(cta) == 0 {
        cta.shared_write(of_warps, (cta.thread() / WARP) as usize, largest);
    }
    cta.sync();
    let mut largest = 0;
    for warp in 0..WARPS {
        largest = largest.max(cta.shared_read(of_warps, warp as usize));
    }
    if largest >= SMALL {
        return 1.0;
    }
    for tile in columns.iter_mut() {
        *tile = tile.map(|four| four.map(|element| element * UP));
    }
    1.0 / UP
}

/// Steps 1 to 4 of a panel that is in shared memory.
#[inline(always)]
#[track_caller]
fn one_panel<C: Cta, const WARPS: u32>(cta: &C, columns: &mut Columns, tiles: [u32; 2]) {
    let sums = times_v(cta, columns, tiles);
    show::<C, WARPS>(cta, &sums);
    cta.sync();
    sum_warps::<C, WARPS>(cta);
    cta.sync();
    times_t::<C, WARPS>(cta);
    cta.sync();
    subtract::<C, WARPS>(cta, columns, tiles);
    cta.sync_warp();
}
