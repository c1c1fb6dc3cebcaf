//! The tiles of rows on which a warp of [`super::dense_narrow`] works, and those on their way.

#![expect(
    clippy::needless_range_loop,
    reason = "iterators over registers put them into local memory"
)]

use super::dense::DenseManyArgs;
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::scalar::{Real, Words};
use crate::verbs::lane;

/// Tiles of a warp in shared memory, of which it works on one.
pub(super) const STEPS: u32 = 3;

/// A warp's tiles on their way: each has R rows for every lane.
pub(super) struct Tiles<'a, 'b, T, const L: usize, const R: usize, const PLAIN: bool> {
    args: &'b DenseManyArgs<'a, T>,
    slots: Shared<T>,
}

impl<'a, 'b, T: Real, const L: usize, const R: usize, const PLAIN: bool>
    Tiles<'a, 'b, T, L, R, PLAIN>
{
    const ROWS: u32 = WARP * R as u32;
    const ELEMENTS: u32 = Self::ROWS * L as u32;

    #[inline(always)]
    pub(super) fn new<C: Cta>(cta: &C, args: &'b DenseManyArgs<'a, T>) -> Self {
        let elements = Self::ELEMENTS * STEPS;
        let warp = cta.thread() / WARP;
        Tiles {
            args,
            slots: Shared::at(warp * elements * T::SIZE, elements),
        }
    }

    /// The row after the last whole tile.
    #[inline(always)]
    pub(super) fn end(&self) -> u64 {
        (self.args.x.rows / Self::ROWS * Self::ROWS) as u64
    }

    #[inline(always)]
    fn columns(&self) -> u32 {
        if PLAIN { L as u32 } else { self.args.columns }
    }

    /// Begins to copy the tile from row `first` on, if it is whole.
    #[inline(always)]
    pub(super) fn ask<C: Cta>(&self, cta: &C, first: u64, slot: u32) {
        if first < self.end() {
            if PLAIN || self.args.x.ld == self.args.columns as u64 {
                self.ask_in_packs(cta, first, slot);
            } else {
                self.ask_one_by_one(cta, first, slot);
            }
        }
        cta.end_copies();
    }

    #[inline(always)]
    fn ask_in_packs<C: Cta>(&self, cta: &C, first: u64, slot: u32) {
        let lanes = T::Pack::LANES as u32;
        let start = first * self.columns() as u64 + (lane(cta) * lanes) as u64;
        let to = slot * Self::ELEMENTS + lane(cta) * lanes;
        for j in 0..Self::ELEMENTS / lanes / WARP {
            let next = j * WARP * lanes;
            if PLAIN || next + lane(cta) * lanes < Self::ROWS * self.columns() {
                let (to, from) = (to + next, start + next as u64);
                cta.copy_whole_pack(self.slots, to as usize, self.args.x.x, from as usize, true);
            }
        }
    }

    /// Where there is something between rows.
    #[inline(always)]
    fn ask_one_by_one<C: Cta>(&self, cta: &C, first: u64, slot: u32) {
        // Rare: nothing of it shall wait in registers.
        let (x, columns) = (&self.args.x, cta.fresh(self.args.columns));
        let mut i = cta.fresh(lane(cta));
        while i < Self::ROWS * columns {
            let (row, column) = (first + (i / columns) as u64, i % columns);
            let from = row * x.ld + (self.args.first_column + column) as u64;
            let to = (slot * Self::ELEMENTS + i) as usize;
            cta.copy_one(self.slots, to, x.x, from as usize, true);
            i += WARP;
        }
    }

    /// One of this lane's chunks of rows.
    #[inline(always)]
    pub(super) fn read<C: Cta, const CHUNK: usize>(
        &self,
        cta: &C,
        slot: u32,
        number: u32,
    ) -> [[T; L]; CHUNK] {
        let mut rows = [[T::ZERO; L]; CHUNK];
        let columns = self.columns();
        let row = (number * WARP + lane(cta)) * CHUNK as u32;
        let at = (slot * Self::ELEMENTS + row * columns) as usize;
        if PLAIN {
            for first in (0..L * CHUNK).step_by(T::Pack::LANES) {
                let pack = cta.shared_read_pack(self.slots, at + first);
                for i in 0..T::Pack::LANES {
                    rows[(first + i) / L][(first + i) % L] = pack.as_ref()[i];
                }
            }
            return rows;
        }
        for i in 0..CHUNK {
            for column in 0..L {
                if (column as u32) < columns {
                    let at = at + i * columns as usize + column;
                    rows[i][column] = cta.shared_read(self.slots, at);
                }
            }
        }
        rows
    }

    /// A row of X.
    #[inline(always)]
    pub(super) fn load<C: Cta>(&self, cta: &C, row: u64) -> [T; L] {
        let x = &self.args.x;
        let start = (row * x.ld + self.args.first_column as u64) as usize;
        let mut elements = [T::ZERO; L];
        for column in 0..L {
            if (column as u32) < self.columns() {
                elements[column] = cta.load(x.x, start + column, Cache::Keep);
            }
        }
        elements
    }
}
