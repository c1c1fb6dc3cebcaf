//! A block's columns and reflectors of any shape, and how they come and go.

use super::super::args::QrArgs;
use super::tile::Tile;
use super::{
    Columns, ROWS, SQUARE, STRIP, STRIPS, TENSOR_COLUMNS, each_two, of_v, place, place_v,
    read_rows, square, write_two,
};
use crate::cta::{Cta, WARP};
use crate::verbs::lane;

/// A block's columns of this kernel.
pub(super) type Block<const WARPS: u32> = Tile<WARPS, TENSOR_COLUMNS>;

impl<const WARPS: u32> Block<WARPS> {
    /// The first row of a strip of this warp, from the base.
    #[inline(always)]
    pub fn row(&self, strip: u32) -> u32 {
        STRIP * (strip * WARPS + self.warp)
    }

    /// This warp's tiles that have rows of the reflectors from `panel` on: from the first to the end.
    #[inline(always)]
    pub fn tiles(&self, panel: u32) -> [u32; 2] {
        let before = |rows: u32| {
            let of = |strip| (rows / ROWS).saturating_sub(self.row(strip) / ROWS).min(4);
            (0..STRIPS).map(of).sum()
        };
        [
            before(panel.saturating_sub(self.since)),
            before(self.rows + ROWS - 1),
        ]
    }

    /// Where component `row` (from the base) of the reflector of column `col` is, and whether it is the first or another one.
    #[inline(always)]
    fn component(&self, row: u32, col: u32) -> (usize, [bool; 2]) {
        let row = self.since + row;
        let at = match row == col {
            true => (self.site.first + col as u64) as usize,
            false => self.site.in_f(row, col),
        };
        (at, [row == col, row > col])
    }

    /// Whether all strips, panels and the columns are whole, and lie in packs.
    #[inline(always)]
    pub fn is_whole(&self, args: &QrArgs<'_, f32>) -> bool {
        let site = &self.site;
        let in_f = (site.f | site.f_col | self.since as u64).is_multiple_of(4);
        let in_a =
            !args.a.is_some() || (site.a_row == 1 && (site.a | site.a_col).is_multiple_of(4));
        let strips = self.rows.is_multiple_of(STRIP) && self.cols == TENSOR_COLUMNS;
        let panels = (self.until - self.since).is_multiple_of(TENSOR_COLUMNS);
        in_f && in_a && strips && panels
    }

    /// C, through this warp's part of shared memory: of A where it is given, otherwise of the factors.
    #[inline(always)]
    #[track_caller]
    pub fn read<C: Cta>(&self, cta: &C, args: &QrArgs<'_, f32>) -> Columns {
        self.stage_columns(cta, args);
        cta.end_copies();
        cta.copies_done::<0>();
        cta.sync_warp();
        let mut columns = Columns::default();
        each_two(cta, |[m, i, half], at| {
            [columns[i][m][2 * half], columns[i][m][2 * half + 1]] = read_rows(cta, at);
        });
        cta.sync_warp();
        columns
    }

    #[inline(always)]
    #[track_caller]
    pub fn write<C: Cta>(&self, cta: &C, args: &QrArgs<'_, f32>, (columns, down): (&Columns, f32)) {
        let v = of_v(cta);
        each_two(cta, |[m, i, half], at| {
            let both = [columns[i][m][2 * half], columns[i][m][2 * half + 1]];
            write_two(cta, v, at, both.map(|element| element * down));
        });
        cta.sync_warp();
        let down = lane(cta);
        for strip in 0..STRIPS {
            let row = self.row(strip) + down;
            if row < self.rows {
                let mut at = self.site.in_f(self.since + row, self.first);
                for col in 0..cta.fresh(self.cols) {
                    let value = cta.shared_read(v, place_v(col, strip * STRIP + down));
                    cta.write(args.f, at, value);
                    at += self.site.f_col as usize;
                }
            }
        }
    }

    /// Begins to copy this warp's rows of the columns.
    #[inline(always)]
    #[track_caller]
    fn stage_columns<C: Cta>(&self, cta: &C, args: &QrArgs<'_, f32>) {
        let site = &self.site;
        if args.a.is_some() {
            let steps = (site.a, site.a_row, site.a_col);
            self.each_column(cta, steps, |place, at, is_there| {
                cta.copy_one(of_v(cta), place, args.a, at, is_there);
            });
        } else {
            self.each_column(cta, (site.f, 1, site.f_col), |place, at, is_there| {
                cta.copy_of(of_v(cta), place, args.f, at, is_there);
            });
        }
    }

    /// Calls `f` for the lane's row of each strip and each column: where it is in the warp's part, where it is in a matrix that
    /// begins at `origin` and has these steps, and whether it is there.
    #[inline(always)]
    #[track_caller]
    fn each_column<C: Cta>(
        &self,
        cta: &C,
        (origin, row_step, col_step): (u64, u64, u64),
        mut f: impl FnMut(usize, usize, bool),
    ) {
        for strip in 0..STRIPS {
            let row = self.row(strip) + lane(cta);
            let mut at =
                origin + (self.since + row) as u64 * row_step + self.first as u64 * col_step;
            for col in 0..cta.fresh(TENSOR_COLUMNS) {
                let is_there = row < self.rows && col < self.cols;
                let place = place_v(col, strip * STRIP + lane(cta));
                f(place, if is_there { at as usize } else { 0 }, is_there);
                at += col_step;
            }
        }
    }

    /// Begins to copy the panel of reflectors from `panel` on: this warp's rows of V, of all threads together T.
    #[inline(always)]
    #[track_caller]
    pub fn stage<C: Cta>(&self, cta: &C, args: &QrArgs<'_, f32>, panel: u32) {
        let steps = (self.until - panel).min(TENSOR_COLUMNS);
        self.stage_v(cta, args, (panel, steps));
        self.stage_t(cta, args, (panel, steps));
        cta.end_copies();
    }

    /// Begins to copy this warp's rows of `steps` reflectors.
    #[inline(always)]
    #[track_caller]
    fn stage_v<C: Cta>(&self, cta: &C, args: &QrArgs<'_, f32>, (panel, steps): (u32, u32)) {
        let (lane, to) = (lane(cta), of_v(cta));
        for strip in 0..STRIPS {
            let row = self.row(strip);
            if row >= self.rows || self.since + row + STRIP <= panel {
                continue;
            }
            let (row, mut p, end) = (row + lane, 0, cta.fresh(TENSOR_COLUMNS));
            while p < end {
                let (at, [is_first, is_other]) = self.component(row, panel + p);
                let place = place_v(p, strip * STRIP + lane);
                let is_there = p < steps && row < self.rows;
                if is_first {
                    cta.copy_of(to, place, args.first, at, is_there);
                } else {
                    cta.copy_of(to, place, args.f, at, is_there && is_other);
                }
                p += 1;
            }
        }
    }

    /// T of `steps` reflectors.
    #[inline(always)]
    #[track_caller]
    fn stage_t<C: Cta>(&self, cta: &C, args: &QrArgs<'_, f32>, (panel, steps): (u32, u32)) {
        let to = square::<WARPS>(WARPS + 2);
        let (mut e, end) = (cta.thread(), cta.fresh(SQUARE));
        while e < end {
            let (row, col) = (e / TENSOR_COLUMNS, e % TENSOR_COLUMNS);
            let is_there = row < steps && col < steps;
            let at = self.site.in_t(panel + row, panel + col);
            cta.copy_of(to, place(row, col), args.t, at, is_there);
            e += WARPS * WARP;
        }
    }
}
