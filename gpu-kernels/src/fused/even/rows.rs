//! How a share is cut into tiles, and what a tile knows of its rows: see [`even`](crate::fused::even).

use super::TILE;
use super::share::Range;
use crate::cta::{Cache, Cta, Shuffle, WARP};
use crate::fused::SparseArgs;
use crate::scalar::Real;
use crate::verbs::{FULL, lane};

/// What is done with the tiles of a share; all lanes of a warp call.
pub(in crate::fused) trait Tiles<'a, T: Real> {
    /// X.
    fn x(&self) -> &SparseArgs<'a, T>;
    /// Some whole rows, or parts of rows, that registers hold: the first entry, and how many there are.
    fn tile<C: Cta, const DOTS: bool>(&self, cta: &C, entries: (u32, u32), rows: &Rows);
    /// A row that is longer than a tile: its first entry, and the one after its last.
    fn long_row<C: Cta>(&self, cta: &C, row: u32, entries: (u32, u32));
}

/// A warp of rows, one to a lane.
#[derive(Clone, Copy)]
pub(in crate::fused) struct Rows {
    /// The first.
    pub first: u32,
    /// How many there are.
    pub count: u32,
    /// Where this lane's begins and ends in the tile.
    pub begin: u32,
    pub end: u32,
}

/// Where each of the rows from `row` on ends, one to a lane; rows beyond `last` are empty.
#[inline(always)]
fn ends<C: Cta, T>(cta: &C, x: &SparseArgs<'_, T>, row: u32, last: u32) -> u32 {
    let next = (row as u64 + lane(cta) as u64 + 1).min(last as u64);
    cta.load(x.offsets, next as usize, Cache::Keep)
}

impl Rows {
    /// From `ends` of rows; the tile has `count` entries from `entry` on, and the rows that begin before its end.
    #[inline(always)]
    fn of<C: Cta>(
        cta: &C,
        ends: u32,
        (entry, count): (u32, u32),
        (first, rows): (u32, u32),
    ) -> Self {
        let end = ends.saturating_sub(entry).min(count);
        let before = cta.shuffle(end, Shuffle::Up(1), WARP, FULL);
        Rows {
            first,
            count: rows,
            begin: if lane(cta) == 0 { 0 } else { before },
            end,
        }
    }

    /// Lanes for each row: as many as leave every row its own.
    #[inline(always)]
    pub fn lanes(&self) -> u32 {
        1 << self.lane_bits()
    }

    /// The same as a power of two.
    #[inline(always)]
    pub fn lane_bits(&self) -> u32 {
        WARP.ilog2() - self.count.next_power_of_two().trailing_zeros()
    }

    /// Bounds of the row that lane number `of` has.
    #[inline(always)]
    pub fn bounds<C: Cta>(&self, cta: &C, of: u32) -> (u32, u32) {
        let begin = cta.shuffle(self.begin, Shuffle::Index(of), WARP, FULL);
        (begin, cta.shuffle(self.end, Shuffle::Index(of), WARP, FULL))
    }
}

/// Products with y: tiles of whole rows.
#[inline(always)]
pub(in crate::fused) fn whole_rows<'a, C: Cta, T: Real, W: Tiles<'a, T>>(cta: &C, walk: &W) {
    let x = walk.x();
    let share = Range::of::<C, T, true>(cta, x);
    let [mut row, last] = share.rows;
    let mut entry = share.entries[0];
    let mut here = ends(cta, x, row, last);
    while row < last {
        let fits = cta.ballot(here.wrapping_sub(entry) <= TILE, FULL);
        let rows = fits.count_ones().min(last - row);
        let (begun, first) = (entry, row);
        if rows == 0 {
            entry = cta.shuffle(here, Shuffle::Index(0), WARP, FULL);
            row += 1;
            here = ends(cta, x, row, last);
            walk.long_row(cta, first, (begun, entry));
            continue;
        }
        entry = cta.shuffle(here, Shuffle::Index(rows - 1), WARP, FULL);
        let of_tile = Rows::of(cta, here, (begun, entry - begun), (first, rows));
        row += rows;
        // On their way while the tile is worked on.
        here = ends(cta, x, row, last);
        if entry > begun {
            walk.tile::<C, true>(cta, (begun, entry - begun), &of_tile);
        }
    }
}

/// `Xᵀ·p`: tiles of entries.
#[inline(always)]
pub(in crate::fused) fn any_part<'a, C: Cta, T: Real, W: Tiles<'a, T>>(cta: &C, walk: &W) {
    let x = walk.x();
    let share = Range::of::<C, T, false>(cta, x);
    let mut row = share.rows[0];
    let [mut entry, last] = share.entries;
    let mut here = ends(cta, x, row, x.rows);
    while entry < last {
        let limit = last.min(entry.saturating_add(TILE));
        let ended = cta.ballot(here <= limit, FULL).count_ones();
        let (begun, first) = (entry, row);
        entry = match ended {
            WARP => cta.shuffle(here, Shuffle::Index(WARP - 1), WARP, FULL),
            _ => limit,
        };
        let rows = (ended + 1).min(WARP).min(x.rows - first);
        let of_tile = Rows::of(cta, here, (begun, entry - begun), (first, rows));
        row += ended;
        here = ends(cta, x, row, x.rows);
        if entry > begun {
            walk.tile::<C, false>(cta, (begun, entry - begun), &of_tile);
        }
    }
}
