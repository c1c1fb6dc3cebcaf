//! Which rows entries are of.

use super::PanelMakingArgs;
use crate::cta::{Cache, Cta, Shuffle, WARP};
use crate::memory::In;
use crate::verbs::{FULL, lane, row_of_entry};

/// The rows of a run, as a warp walks it.
pub(super) struct Rows<'a> {
    offsets: In<'a, u32>,
    rows: u32,
    /// A row that does not lie behind the next entry.
    row: u32,
}

impl<'a> Rows<'a> {
    /// From the row of this entry on.
    #[inline(always)]
    pub fn from<C: Cta, T>(cta: &C, args: &PanelMakingArgs<'a, T>, entry: u32) -> Self {
        let mut rows = Rows {
            offsets: args.offsets,
            rows: args.rows,
            row: 0,
        };
        // Pairs know their rows.
        if args.offsets.is_some() {
            rows.row = row_of_entry(cta, rows.offsets, (0, rows.rows), entry);
        }
        rows
    }

    /// The row of each lane's entry; entries ascend from lane to lane, and from call to call. The whole warp calls.
    ///
    /// The ends of 32 rows are requested together, and each lane looks among them: rows have some entries. Where they do
    /// not reach, all lanes search.
    #[inline(always)]
    pub fn of<C: Cta>(&mut self, cta: &C, entry: u32) -> u32 {
        let (mut found, mut is_found) = (0, false);
        loop {
            let at = (self.row + lane(cta) + 1).min(self.rows);
            let end: u32 = cta.load(self.offsets, at as usize, Cache::Keep);
            let ended = ended(cta, end, entry);
            if !is_found && ended < WARP {
                (found, is_found) = (self.row + ended, true);
            }
            let left = cta.ballot(!is_found, FULL);
            if left == 0 {
                break;
            }
            let next = cta.shuffle(entry, Shuffle::Index(left.trailing_zeros()), WARP, FULL);
            let from = self.row + WARP;
            self.row = row_of_entry(cta, self.offsets, (from, self.rows), next);
        }
        self.row = cta.shuffle(found, Shuffle::Index(WARP - 1), WARP, FULL);
        found
    }
}

/// How many of the lanes' `end`s, which ascend, do not lie behind this lane's entry.
#[inline(always)]
fn ended<C: Cta>(cta: &C, end: u32, entry: u32) -> u32 {
    let mut ended = 0;
    let mut step = WARP / 2;
    while step > 0 {
        let of = cta.shuffle(end, Shuffle::Index(ended + step - 1), WARP, FULL);
        if of <= entry {
            ended += step;
        }
        step /= 2;
    }
    let of = cta.shuffle(end, Shuffle::Index(ended), WARP, FULL);
    ended + (of <= entry) as u32
}
