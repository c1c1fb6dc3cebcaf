//! S(i, j) = Vᵢᵀ·Vⱼ·T(j, j): a warp for each pair of panels, those of one j beside each other.
//!
//! Rows above panel j are zeros of Vⱼ, and count for nothing. Its first 32 rows are a triangle, under zeros, with first
//! components on its diagonal. A lane has columns 4g to 4g + 3 of Vᵢ, so that it writes packs.

use super::super::args::{QrArgs, Site};
use super::super::pieces::four;
use super::super::update::in_work;
use super::product::{
    Square, Strip, Tensor, add_square, place, quad, read_steps, write_four, zero,
};
use super::{SIDE, WARPS, bounds, pairs_of_panels, panels};
use crate::cta::{Cta, WARP};

/// A warp's panels.
struct Pair {
    site: Site,
    matrix: u32,
    /// The first columns of panels i and j.
    earlier: u32,
    start: u32,
}

impl Pair {
    /// Those of this warp, if there are any.
    #[inline(always)]
    #[track_caller]
    fn of<C: Cta, T: Tensor>(cta: &C, args: &QrArgs<'_, T>) -> Option<Pair> {
        let of_matrix = pairs_of_panels(panels(args));
        let number = cta.block() as u64 * WARPS as u64 + (cta.thread() / WARP) as u64;
        if number >= args.count as u64 * of_matrix as u64 {
            return None;
        }
        let matrix = (number / of_matrix as u64) as u32;
        let (mut earlier, mut later) = ((number % of_matrix as u64) as u32, 1);
        while earlier >= later {
            earlier -= later;
            later += 1;
        }
        Some(Pair {
            site: Site::of(cta, args, matrix),
            matrix,
            earlier: earlier * SIDE,
            start: later * SIDE,
        })
    }

    /// 16 rows of Vᵢ, from `row` on.
    #[inline(always)]
    #[track_caller]
    fn earlier<C: Cta, T: Tensor>(&self, cta: &C, args: &QrArgs<'_, T>, row: u32) -> Strip<T> {
        let (group, turn) = quad(cta);
        self.columns(
            cta,
            args,
            (row, turn),
            (self.earlier + 4 * group, self.site.f_col),
        )
    }

    /// 16 rows of Vⱼ.
    #[inline(always)]
    #[track_caller]
    fn later<C: Cta, T: Tensor>(&self, cta: &C, args: &QrArgs<'_, T>, row: u32) -> Strip<T> {
        let (group, turn) = quad(cta);
        self.columns(
            cta,
            args,
            (row, turn),
            (self.start + group, 8 * self.site.f_col),
        )
    }

    /// 16 rows of four columns, from column `first` on, `step` elements apart. Rows end with a whole pack.
    #[inline(always)]
    #[track_caller]
    fn columns<C: Cta, T: Tensor>(
        &self,
        cta: &C,
        args: &QrArgs<'_, T>,
        (row, turn): (u32, u32),
        (first, step): (u32, u64),
    ) -> Strip<T> {
        let at = self.site.in_f(row, first);
        if row + 16 <= self.site.rows {
            return four(|q| read_steps(cta, args.f, at + q * step as usize, turn));
        }
        four(|q| self.last_rows(cta, args, (row, turn), at + q * step as usize))
    }

    /// A lane's steps of a column whose rows end before the sixteenth.
    #[inline(always)]
    #[track_caller]
    fn last_rows<C: Cta, T: Tensor>(
        &self,
        cta: &C,
        args: &QrArgs<'_, T>,
        (row, turn): (u32, u32),
        at: usize,
    ) -> [T; 4] {
        four(|e| {
            let step = place::<T>(turn, e as u32);
            match row + step < self.site.rows {
                true => cta.read(args.f, at + step as usize),
                false => T::ZERO,
            }
        })
    }

    /// Rows `down` to `down` + 15 of the panel's first 32, of Vⱼ.
    #[inline(always)]
    #[track_caller]
    fn triangle<C: Cta, T: Tensor>(&self, cta: &C, args: &QrArgs<'_, T>, down: u32) -> Strip<T> {
        let stored = self.later(cta, args, self.start + down);
        let (group, turn) = quad(cta);
        four(|q| {
            let p = group + 8 * q as u32;
            let first = cta.read(
                args.first,
                (self.site.first + (self.start + p) as u64) as usize,
            );
            four(|e| {
                let row = down + place::<T>(turn, e as u32);
                match () {
                    () if row == p => first,
                    () if row > p => stored[q][e],
                    () => T::ZERO,
                }
            })
        })
    }
}

/// See the head of the file.
#[inline(always)]
pub fn pairs<C: Cta, T: Tensor>(cta: &C, args: &QrArgs<'_, T>) {
    bounds::<C, T>(cta);
    let Some(pair) = Pair::of(cta, args) else {
        return;
    };
    let mut sums = zero();
    add_square(cta, &mut sums, |half| {
        let down = 16 * half;
        let earlier = pair.earlier(cta, args, pair.start + down);
        [earlier, pair.triangle(cta, args, down)]
    });
    let mut row = pair.start + SIDE;
    while row < pair.site.rows {
        add_square(cta, &mut sums, |half| {
            let row = row + 16 * half;
            [pair.earlier(cta, args, row), pair.later(cta, args, row)]
        });
        row += SIDE;
    }
    let sums = times_t(cta, args, &pair, &sums);
    write(cta, args, &pair, &sums);
}

/// Times T(j, j). What a lane has of a product are its steps of another: two neighbours of each eight.
#[inline(always)]
#[track_caller]
fn times_t<C: Cta, T: Tensor>(
    cta: &C,
    args: &QrArgs<'_, T>,
    pair: &Pair,
    sums: &Square<T>,
) -> Square<T> {
    let (group, turn) = quad(cta);
    let mut made = zero();
    add_square(cta, &mut made, |half| {
        let x = four(|q| four(|e| sums[q / 2][2 * half as usize + e / 2][q % 2 * 2 + e % 2]));
        let y = four(|q| {
            four(|e| {
                let e = e as u32;
                let row = pair.start + 16 * half + 8 * (e / 2) + 2 * turn + e % 2;
                let col = pair.start + group + 8 * q as u32;
                cta.read(args.t, pair.site.in_t(row, col))
            })
        });
        [x, y]
    });
    made
}

/// S to `work`.
#[inline(always)]
#[track_caller]
fn write<C: Cta, T: Tensor>(cta: &C, args: &QrArgs<'_, T>, pair: &Pair, sums: &Square<T>) {
    let (group, turn) = quad(cta);
    for column in 0..8 {
        let (n, c) = (column / 2, column % 2);
        let p = 8 * n as u32 + 2 * turn + c as u32;
        let values = four(|q| sums[q / 2][n][q % 2 * 2 + c]);
        let place = (pair.matrix, pair.start);
        let at = in_work(args, place, (pair.earlier + 4 * group, p));
        write_four(cta, args.work, at, values);
    }
}
