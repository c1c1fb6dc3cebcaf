//! A block's columns and reflectors, and how they come and go.

use super::super::args::QrArgs;
use super::super::tensor::WIDE_COLUMNS;
use super::super::tensor::tile::Tile;
use super::{Columns, GROUPS, PITCH_T, PITCH_V, REFLECTORS, ROWS, of_t, of_v, quad};
use crate::cta::{Cache, Cta, WARP};
use crate::verbs::lane;

/// A block's columns of this kernel.
pub(super) type Block<const WARPS: u32> = Tile<WARPS, WIDE_COLUMNS>;

impl<const WARPS: u32> Block<WARPS> {
    /// The first row of a group of this warp, from the base.
    #[inline(always)]
    fn row(&self, group: usize) -> u32 {
        ROWS * (group as u32 * WARPS + self.warp)
    }

    /// Which groups have rows of the reflectors from `panel` on.
    #[inline(always)]
    pub fn groups(&self, panel: u32) -> [bool; GROUPS] {
        core::array::from_fn(|group| {
            let row = self.row(group);
            row < self.rows && row >= panel - self.since
        })
    }

    /// Calls `f` for the lane's elements: group, tile and number there, and the row and column in the matrix.
    #[inline(always)]
    #[track_caller]
    fn each<C: Cta>(&self, cta: &C, mut f: impl FnMut([usize; 3], (u32, u32))) {
        let (group, turn) = quad(cta);
        for i in 0..GROUPS {
            for tile in 0..2 {
                for e in 0..4 {
                    let row = self.row(i) + 8 * tile as u32 + 2 * turn + e as u32 % 2;
                    let col = group + 8 * (e as u32 / 2);
                    if row < self.rows && col < self.cols {
                        f([i, tile, e], (self.since + row, self.first + col));
                    }
                }
            }
        }
    }

    /// C: of A where it is given, otherwise of the factors.
    #[inline(always)]
    #[track_caller]
    pub fn read<C: Cta>(&self, cta: &C, args: &QrArgs<'_, f64>) -> Columns {
        let mut columns = Columns::default();
        self.each(cta, |[i, tile, e], (row, col)| {
            columns[i][tile][e] = match args.a.is_some() {
                true => cta.load(args.a, self.site.in_a(row, col), Cache::Once),
                false => cta.read(args.f, self.site.in_f(row, col)),
            };
        });
        columns
    }

    #[inline(always)]
    #[track_caller]
    pub fn write<C: Cta>(&self, cta: &C, args: &QrArgs<'_, f64>, columns: &Columns) {
        self.each(cta, |[i, tile, e], (row, col)| {
            cta.write(args.f, self.site.in_f(row, col), columns[i][tile][e]);
        });
    }

    /// Begins to copy the reflectors from `panel` on: this warp's rows of V, of all threads together T.
    #[inline(always)]
    #[track_caller]
    pub fn stage<C: Cta>(&self, cta: &C, args: &QrArgs<'_, f64>, (panel, turn): (u32, u32)) {
        let steps = (self.until - panel).min(REFLECTORS);
        let groups = self.groups(panel);
        for (group, is_there) in groups.into_iter().enumerate() {
            if is_there {
                self.stage_group(cta, args, (panel, steps), group);
            }
        }
        self.stage_t(cta, args, (panel, steps), turn);
        cta.end_copies();
    }

    /// Whether reflectors lie in packs.
    #[inline(always)]
    fn is_packed(&self) -> bool {
        let site = &self.site;
        (site.f | site.f_col | self.since as u64 | self.rows as u64).is_multiple_of(2)
    }

    /// 16 rows of reflectors: a lane has two neighbours of every fourth one.
    #[inline(always)]
    #[track_caller]
    fn stage_group<C: Cta>(
        &self,
        cta: &C,
        args: &QrArgs<'_, f64>,
        (panel, steps): (u32, u32),
        group: usize,
    ) {
        let (lane, to, is_packed) = (lane(cta), of_v(cta), self.is_packed());
        let down = lane % 8 * 2;
        let row = self.row(group) + down;
        let (mut p, end) = (lane / 8, cta.fresh(REFLECTORS));
        while p < end {
            let place = (p * PITCH_V + group as u32 * ROWS + down) as usize;
            let at = self.site.in_f(self.since + row, panel + p);
            if is_packed && p < steps && row < self.rows {
                cta.copy_pack_of(to, place, args.f, at);
            } else {
                for e in 0..2 {
                    let is_there = p < steps && row + e < self.rows;
                    let at = if is_there { at + e as usize } else { 0 };
                    cta.copy_of(to, place + e as usize, args.f, at, is_there);
                }
            }
            p += WARP / 8;
        }
    }

    /// T of `steps` reflectors.
    #[inline(always)]
    #[track_caller]
    fn stage_t<C: Cta>(
        &self,
        cta: &C,
        args: &QrArgs<'_, f64>,
        (panel, steps): (u32, u32),
        turn: u32,
    ) {
        let thread = cta.fresh(cta.thread());
        if thread < REFLECTORS * REFLECTORS {
            let (row, col) = (thread / REFLECTORS, thread % REFLECTORS);
            let is_there = row < steps && col < steps;
            let at = self.site.in_t(panel + row, panel + col);
            let place = (row * PITCH_T + col) as usize;
            let at = if is_there { at } else { 0 };
            cta.copy_of(of_t::<WARPS>(turn), place, args.t, at, is_there);
        }
    }

    /// First components of the reflectors, and zeros above them, where this warp has those rows.
    #[inline(always)]
    #[track_caller]
    pub fn complete<C: Cta>(&self, cta: &C, args: &QrArgs<'_, f64>, panel: u32) {
        for group in 0..GROUPS {
            if self.row(group) == panel - self.since {
                self.complete_group(cta, args, (panel, group as u32 * ROWS));
            }
        }
    }

    /// A lane has half of the rows of a reflector; those begin at `first` of the warp's part.
    #[inline(always)]
    #[track_caller]
    fn complete_group<C: Cta>(&self, cta: &C, args: &QrArgs<'_, f64>, (panel, first): (u32, u32)) {
        let lane = lane(cta);
        let (p, mut row) = (lane % REFLECTORS, lane / REFLECTORS * 8);
        let end = row + 8;
        while row < end {
            let place = (p * PITCH_V + first + row) as usize;
            if row < p {
                cta.shared_write(of_v(cta), place, 0.0);
            }
            if row == p && panel + p < self.until {
                let at = self.site.first + (panel + p) as u64;
                let value = cta.read(args.first, at as usize);
                cta.shared_write(of_v(cta), place, value);
            }
            row += 1;
        }
        cta.sync_warp();
    }
}
