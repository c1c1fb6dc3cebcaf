//! T(i, j) = −Σ T(i, k)·S(k, j), i ≤ k < j: a warp for each i, j after j, as rows of T need no others.
//!
//! Warps of a block have neighbouring i, and take k from j − 1 down: they read the same S at about the same time. Blocks of small
//! i, which take longest, come first. A lane has two neighbouring columns of each eight (f64), or four of each sixteen: packs.

use super::super::args::{QrArgs, Site};
use super::super::pieces::four;
use super::super::update::{in_work, work_pitch};
use super::product::{Square, Strip, Tensor, add_square, quad, read_steps, zero};
use super::{SIDE, WARPS, bounds, panels};
use crate::cta::{Cta, WARP};
use crate::scalar::{Real, Words};

/// A warp's rows.
pub(super) struct Rows {
    site: Site,
    matrix: u32,
    /// The first of them.
    row: u32,
}

impl Rows {
    /// The 32 rows from `row` on, of the matrix that the block has.
    #[inline(always)]
    #[track_caller]
    pub fn of<C: Cta, T: Tensor>(cta: &C, args: &QrArgs<'_, T>, row: u32) -> Rows {
        let matrix = cta.fresh(cta.block()) % args.count;
        Rows {
            site: Site::of(cta, args, matrix),
            matrix,
            row,
        }
    }

    /// Where T has column `col` of the row that is `row` behind the first.
    #[inline(always)]
    pub fn in_t(&self, row: u32, col: u32) -> usize {
        self.site.in_t(self.row + row, col)
    }

    /// 16 columns of them, from `col` on.
    #[inline(always)]
    #[track_caller]
    fn of_t<C: Cta, T: Tensor>(&self, cta: &C, args: &QrArgs<'_, T>, col: u32) -> Strip<T> {
        let (group, turn) = quad(cta);
        let (at, step) = (
            self.site.in_t(self.row + group, col),
            8 * cta.fresh(self.site.least()) as usize,
        );
        four(|q| read_steps(cta, args.t, at + q * step, turn))
    }

    /// 16 rows of S from `at` on, columns of which are `pitch` apart.
    #[inline(always)]
    #[track_caller]
    fn of_s<C: Cta, T: Tensor>(
        &self,
        cta: &C,
        args: &QrArgs<'_, T>,
        (at, pitch): (usize, u32),
    ) -> Strip<T> {
        let (group, turn) = quad(cta);
        let pitch = cta.fresh(pitch);
        let at = at + (column::<T>(group) * pitch) as usize;
        four(|n| {
            let further = column_of::<T>(n as u32) * pitch;
            read_steps(cta, args.work, at + further as usize, turn)
        })
    }
}

/// Which column of a square is column `group` of the first product: in f32 lanes then have neighbours of two products, four in all.
#[inline(always)]
pub(super) const fn column<T: Real>(group: u32) -> u32 {
    match T::SIZE {
        4 => 4 * (group / 2) + group % 2,
        _ => group,
    }
}

/// How far behind it that of product `n` is.
#[inline(always)]
pub(super) const fn column_of<T: Real>(n: u32) -> u32 {
    match T::SIZE {
        4 => 16 * (n / 2) + 2 * (n % 2),
        _ => 8 * n,
    }
}

/// See the head of the file.
#[inline(always)]
pub fn rows<C: Cta, T: Tensor>(cta: &C, args: &QrArgs<'_, T>) {
    bounds::<C, T>(cta);
    let row = (cta.block() / args.count * WARPS + cta.thread() / WARP) * SIDE;
    let rows = Rows::of(cta, args, row);
    let (mut start, end) = (row + SIDE, panels(args) * SIDE);
    while start < end {
        let sums = square(cta, args, &rows, (start, 0, 1));
        write(cta, args, &rows, (start, &sums));
        // The next squares take this one.
        cta.sync_warp();
        start += SIDE;
    }
}

/// The sum of products, for the panel that begins at `start`: those of every `of`th panel before it, of which `skipped` come later.
#[inline(always)]
#[track_caller]
pub(super) fn square<C: Cta, T: Tensor>(
    cta: &C,
    args: &QrArgs<'_, T>,
    rows: &Rows,
    (start, skipped, of): (u32, u32, u32),
) -> Square<T> {
    let mut sums = zero();
    let mut k = start.saturating_sub(skipped * SIDE);
    let first = in_work(args, (rows.matrix, start), (0, 0));
    let pitch = work_pitch(args, start);
    while k > rows.row {
        k -= SIDE;
        add_square(cta, &mut sums, |half| {
            let col = k + 16 * half;
            let of_s = (first + col as usize, pitch);
            [rows.of_t(cta, args, col), rows.of_s(cta, args, of_s)]
        });
        k = k.saturating_sub((of - 1) * SIDE);
    }
    sums
}

/// The rows' columns of the panel that begins at `start`.
#[inline(always)]
#[track_caller]
fn write<C: Cta, T: Tensor>(
    cta: &C,
    args: &QrArgs<'_, T>,
    rows: &Rows,
    (start, sums): (u32, &Square<T>),
) {
    let (group, turn) = quad(cta);
    for q in 0..4 {
        let row = rows.row + group + 8 * q as u32;
        let own = |n: usize, e: usize| (-sums[q / 2][n][q % 2 * 2 + e]).to_bits();
        let at = rows.site.in_t(row, start + column::<T>(2 * turn));
        for n in (0..4).step_by(<T::Pack as Words<T>>::LANES / 2) {
            // The second two are of the next product, or of no pack.
            let pack = T::Pack::from_words(four(|e| own((n + e / 2).min(3), e % 2)));
            cta.write_pack(args.t, at + column_of::<T>(n as u32) as usize, pack);
        }
    }
}
