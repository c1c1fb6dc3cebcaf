//! Wide tiles: panels of A and B in shared memory, a block of C in the registers of each thread.
//!
//! Mapping: 8 warps as 4 × 2, lanes as 4 × 8; a thread has E × E elements (E = 8: a tile of 128 × 128) in groups of four
//! rows and four columns, the groups 16 rows and 32 columns apart, so that a warp reads its part of a panel in
//! accesses of 64 and 128 bytes without conflicts. Panels hold [`DEPTH`] steps of k, k outermost: row k of the panel
//! of A at `k · pitch`. Tiles of C are walked row by row.
//!
//! Shared bytes: [`panel_elements`] elements. Source: V. Volkov and J. Demmel, "Benchmarking GPUs to tune dense
//! linear algebra", SC 2008.

use super::operand::Operand;
use super::{MatmulArgs, store};
use crate::cta::{Cta, Shared, WARP};
use crate::scalar::{Real, Words};

/// Steps of k in a panel.
pub const DEPTH: u32 = 16;
/// Elements behind each row of a panel: rows four apart start in different banks.
const PADDING: u32 = 8;

/// Elements of the panels of A and B.
pub const fn panel_elements(tile: u32) -> u32 {
    2 * DEPTH * pitch(tile)
}

/// Elements between the rows of a panel.
const fn pitch(tile: u32) -> u32 {
    tile + PADDING
}

/// The panels of A and of B.
#[derive(Clone, Copy)]
struct Panels<T> {
    a: Shared<T>,
    b: Shared<T>,
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

/// A panel is loaded, multiplied, and then the next one is loaded.
#[inline(always)]
pub fn blocked<C: Cta, T: Real, const E: usize, const TILE: u32>(
    cta: &C,
    args: &MatmulArgs<'_, T>,
) {
    let tiles = args.n.div_ceil(TILE);
    let origin = (cta.block() / tiles * TILE, cta.block() % tiles * TILE);
    let mut block = Block::<T, E>::new(cta);
    let (a, b) = (Operand::a(args), Operand::b(args));
    let len = DEPTH * pitch(TILE);
    let panels = Panels {
        a: Shared::at(0, len),
        b: Shared::at(len * T::SIZE, len),
    };
    let mut k = 0;
    while k < args.k {
        a.load_panel::<C, TILE, DEPTH>(cta, panels.a, pitch(TILE), (origin.0, k));
        b.load_panel::<C, TILE, DEPTH>(cta, panels.b, pitch(TILE), (origin.1, k));
        cta.sync();
        block.multiply(cta, panels, pitch(TILE));
        cta.sync();
        k += DEPTH;
    }
    block.store(cta, args, origin);
}
