//! The column of a tiny matrix that becomes a reflector, as the lanes of the matrix see it.

use super::pieces::{CHUNK, read_chunk, write_piece};
use super::reflector::Ranged;
use super::tiny::Group;
use crate::cta::{Cta, Shared, Shuffle};
use crate::verbs::FULL;

/// Whether lanes have registers for the shown column besides their own.
pub(super) const fn is_held(rows: u32, bytes: u32) -> bool {
    bytes == 4 && rows <= 16
}

/// Which chunks of rows there are in steps with columns `OWN` of the lanes: row k is the first one left.
pub(super) struct Left<const LANES: usize, const ROWS: usize, const OWN: usize>;

impl<const LANES: usize, const ROWS: usize, const OWN: usize> Left<LANES, ROWS, OWN> {
    /// Chunks, in the first of these steps.
    pub const CHUNKS: usize = (ROWS - OWN * LANES).div_ceil(CHUNK);

    /// Whether chunk `c` has some of `live` rows. It has in all of these steps where the matrix is as tall as the entry takes: then
    /// zeros are computed for a lower one, which take less time than to ask.
    #[inline(always)]
    pub const fn has(c: usize, live: u32) -> bool {
        let is_certain = ROWS <= 16 && c * CHUNK + (OWN + 1) * LANES <= ROWS;
        c < Self::CHUNKS && (is_certain || ((c * CHUNK) as u32) < live)
    }
}

/// The column that becomes a reflector, as a lane sees it: zeros behind its last row.
pub(super) struct Shown<T, const ROWS: usize> {
    /// In shared memory, unless it is held.
    pub at: (Shared<T>, usize),
    pub held: [T; ROWS],
}

impl<T: Ranged, const ROWS: usize> Shown<T, ROWS> {
    pub(super) const HELD: bool = is_held(ROWS as u32, T::SIZE);

    /// Shows column `k`, which `column` is in the lane that has it, its column `OWN`, to all lanes of the matrix. The whole warp calls.
    #[inline(always)]
    #[track_caller]
    #[expect(
        clippy::needless_range_loop,
        reason = "iterators over registers put them into local memory"
    )]
    pub(super) fn of<C: Cta, const LANES: usize, const OWN: usize>(
        cta: &C,
        group: &Group<T>,
        (column, is_own): (&[T; ROWS], bool),
        (k, live): (u32, u32),
    ) -> Self {
        let mut shown = Shown {
            at: (group.x, (k % 2 * group.turn) as usize),
            held: [T::ZERO; ROWS],
        };
        if !Self::HELD {
            if is_own {
                write_piece(cta, shown.at.0, shown.at.1, column);
            }
            cta.sync_warp();
            return shown;
        }
        for c in 0..ROWS / CHUNK {
            if !Left::<LANES, ROWS, OWN>::has(c, live) {
                break;
            }
            for r in c * CHUNK..(c + 1) * CHUNK {
                shown.held[r] = of_lane::<C, T, LANES>(cta, column[r], k);
            }
        }
        shown
    }

    #[inline(always)]
    #[track_caller]
    pub(super) fn first<C: Cta>(&self, cta: &C) -> T {
        match Self::HELD {
            true => self.held[0],
            false => cta.shared_read(self.at.0, self.at.1),
        }
    }

    #[inline(always)]
    #[track_caller]
    pub(super) fn chunk<C: Cta>(&self, cta: &C, c: usize) -> [T; CHUNK] {
        match Self::HELD {
            true => core::array::from_fn(|r| self.held[c * CHUNK + r]),
            false => read_chunk(cta, self.at.0, self.at.1 + c * CHUNK),
        }
    }
}

/// What the lane has that has column `k` of the matrix.
#[inline(always)]
#[track_caller]
pub(super) fn of_lane<C: Cta, T: Ranged, const LANES: usize>(cta: &C, value: T, k: u32) -> T {
    let lane = Shuffle::Index(k % LANES as u32);
    cta.shuffle(value, lane, LANES as u32, FULL)
}
