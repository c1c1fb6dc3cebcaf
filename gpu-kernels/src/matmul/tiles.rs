//! Wide tiles: panels of A and B in shared memory, a block of C in the registers of each thread.
//!
//! Mapping: 8 warps as 4 × 2, lanes as 4 × 8; a thread has E × E elements (E = 8: a tile of 128 × 128) in groups of four
//! rows and four columns, the groups 16 rows and 32 columns apart, so that a warp reads its part of a panel in
//! accesses of 64 and 128 bytes without conflicts. Panels hold [`DEPTH`] steps of k, k outermost: row k of the panel
//! of A at `k · pitch`. Tiles of C are walked in bands of `BAND` rows of tiles, which keeps B in the L2 cache.
//!
//! Shared bytes: [`stage_elements`] elements per stage; one stage, or [`STAGES`] when copied ahead: while one is
//! multiplied, the copies of the next ones run. Source: V. Volkov and J. Demmel, "Benchmarking GPUs to tune dense
//! linear algebra", SC 2008; the arrangement of the threads of a warp is that of CUTLASS.

use super::operand::Operand;
use super::{MatmulArgs, store};
use crate::cta::{Cta, Shared, WARP};
use crate::scalar::{Real, Words};

/// Steps of k in a panel.
pub const DEPTH: u32 = 16;
/// Panels of each operand that are copied ahead of their use, and used.
pub const STAGES: u32 = 3;
/// Rows of tiles that are walked together.
const BAND: u32 = 8;
/// Elements behind each row of a panel: rows four apart start in different banks.
const PADDING: u32 = 8;

/// Elements of the panels of A and B for one stage.
pub const fn stage_elements(tile: u32) -> u32 {
    2 * DEPTH * pitch(tile)
}

/// Elements between the rows of a panel.
pub const fn pitch(tile: u32) -> u32 {
    tile + PADDING
}

/// First row and first column of the block's tile.
#[inline(always)]
pub fn origin<C: Cta, T>(cta: &C, args: &MatmulArgs<'_, T>, tile: u32) -> (u32, u32) {
    let (rows, columns) = (args.m.div_ceil(tile), args.n.div_ceil(tile));
    let band = cta.block() / (BAND * columns);
    let height = (rows - band * BAND).min(BAND);
    let inside = cta.block() - band * BAND * columns;
    (
        (band * BAND + inside % height) * tile,
        inside / height * tile,
    )
}

/// The panels of one stage.
#[derive(Clone, Copy)]
pub struct Panels<T> {
    /// Of A.
    pub a: Shared<T>,
    /// Of B.
    pub b: Shared<T>,
}

impl<T: Real> Panels<T> {
    /// Those of stage number `stage`.
    #[inline(always)]
    pub fn of(stage: u32, tile: u32) -> Self {
        let len = DEPTH * pitch(tile);
        let first = stage * stage_elements(tile) * T::SIZE;
        Panels {
            a: Shared::at(first, len),
            b: Shared::at(first + len * T::SIZE, len),
        }
    }
}

/// Multiplies with panels that were loaded before: one stage.
#[inline(always)]
pub fn each_loaded<C: Cta, T: Real, const TILE: u32>(
    cta: &C,
    args: &MatmulArgs<'_, T>,
    (row, column): (u32, u32),
    mut multiply: impl FnMut(Panels<T>),
) {
    let (a, b) = (Operand::a(args), Operand::b(args));
    let panels = Panels::of(0, TILE);
    let mut k = 0;
    while k < args.k {
        a.load_panel::<C, TILE, DEPTH>(cta, panels.a, pitch(TILE), (row, k));
        b.load_panel::<C, TILE, DEPTH>(cta, panels.b, pitch(TILE), (column, k));
        cta.sync();
        multiply(panels);
        cta.sync();
        k += DEPTH;
    }
}

/// Multiplies with panels that were copied ahead: [`STAGES`] stages.
#[inline(always)]
pub fn each_copied<C: Cta, T: Real, const TILE: u32>(
    cta: &C,
    args: &MatmulArgs<'_, T>,
    (row, column): (u32, u32),
    mut multiply: impl FnMut(Panels<T>),
) {
    let (a, b) = (Operand::a(args), Operand::b(args));
    let copy = |stage: u32, k: u32| {
        if k < args.k {
            let panels = Panels::of(stage, TILE);
            a.copy_panel::<C, TILE, DEPTH>(cta, panels.a, pitch(TILE), (row, k));
            b.copy_panel::<C, TILE, DEPTH>(cta, panels.b, pitch(TILE), (column, k));
        }
        // An empty group, where there is nothing left, keeps the count.
        cta.end_copies();
    };
    for stage in 0..STAGES - 1 {
        copy(stage, stage * DEPTH);
    }
    let (mut k, mut stage, mut free) = (0, 0, STAGES - 1);
    while k < args.k {
        cta.copies_done::<{ STAGES - 2 }>();
        // All have what this stage holds, and nobody reads the one that is copied to next.
        cta.sync();
        copy(free, k + (STAGES - 1) * DEPTH);
        multiply(Panels::of(stage, TILE));
        free = stage;
        stage = if stage + 1 == STAGES { 0 } else { stage + 1 };
        k += DEPTH;
    }
}

/// A thread's elements of C.
struct Block<T, const E: usize> {
    /// First row of the thread in the tile.
    row: u32,
    /// First column.
    column: u32,
    sums: [[T; E]; E],
}

/// Rows between a thread's groups of four.
const ROW_STEP: u32 = 16;
/// Columns between them.
const COLUMN_STEP: u32 = 32;

impl<T: Real, const E: usize> Block<T, E> {
    #[inline(always)]
    fn new<C: Cta>(cta: &C) -> Self {
        let (warp, lane) = (cta.thread() / WARP, cta.thread() % WARP);
        let groups = E as u32 / 4;
        Block {
            row: warp / 2 * ROW_STEP * groups + lane / 8 * 4,
            column: warp % 2 * COLUMN_STEP * groups + lane % 8 * 4,
            sums: [[T::ZERO; E]; E],
        }
    }

    #[inline(always)]
    fn multiply<C: Cta>(&mut self, cta: &C, panels: Panels<T>, pitch: u32) {
        for k in 0..DEPTH {
            let a: [T; E] = read(cta, panels.a, k * pitch + self.row, ROW_STEP);
            let b: [T; E] = read(cta, panels.b, k * pitch + self.column, COLUMN_STEP);
            for r in 0..E {
                for c in 0..E {
                    self.sums[r][c] = a[r].fma(b[c], self.sums[r][c]);
                }
            }
        }
    }

    #[inline(always)]
    fn store<C: Cta>(&self, cta: &C, args: &MatmulArgs<'_, T>, (row, column): (u32, u32)) {
        for r in 0..E {
            for c in 0..E {
                let row = row + self.row + r as u32 / 4 * ROW_STEP + r as u32 % 4;
                let column = column + self.column + c as u32 / 4 * COLUMN_STEP + c as u32 % 4;
                store(cta, args, row, column, self.sums[r][c]);
            }
        }
    }
}

/// Groups of four elements, `step` apart.
#[inline(always)]
fn read<C: Cta, T: Real, const E: usize>(cta: &C, from: Shared<T>, at: u32, step: u32) -> [T; E] {
    let mut values = [T::ZERO; E];
    for part in 0..E / T::Pack::LANES {
        let first = part * T::Pack::LANES;
        let place = at as usize + first / 4 * step as usize + first % 4;
        let pack = cta.shared_read_pack(from, place);
        for l in 0..T::Pack::LANES {
            values[first + l] = pack.as_ref()[l];
        }
    }
    values
}

/// One stage, loads and stores.
#[inline(always)]
pub fn blocked<C: Cta, T: Real, const E: usize, const TILE: u32>(
    cta: &C,
    args: &MatmulArgs<'_, T>,
) {
    let origin = origin(cta, args, TILE);
    let mut block = Block::<T, E>::new(cta);
    each_loaded::<C, T, TILE>(cta, args, origin, |panels| {
        block.multiply(cta, panels, pitch(TILE))
    });
    block.store(cta, args, origin);
}

/// Copied ahead.
#[inline(always)]
pub fn pipelined<C: Cta, T: Real, const E: usize, const TILE: u32>(
    cta: &C,
    args: &MatmulArgs<'_, T>,
) {
    let origin = origin(cta, args, TILE);
    let mut block = Block::<T, E>::new(cta);
    each_copied::<C, T, TILE>(cta, args, origin, |panels| {
        block.multiply(cta, panels, pitch(TILE))
    });
    block.store(cta, args, origin);
}
