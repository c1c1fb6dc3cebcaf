//! What a thread loads: its packs of vectors and rows.

use crate::cta::{Cache, Cta};
use crate::fused::{DenseArgs, Team};
use crate::memory::In;
use crate::scalar::{Pack, Real};

/// A thread's packs of a panel: pack k starts at column `start + rank · L + k · size · L`.
pub(crate) struct Columns {
    first: u32,
    step: u32,
}

impl Columns {
    #[inline(always)]
    pub(crate) fn of<C: Cta, G: Team>(cta: &C, start: u32, lanes: usize) -> Columns {
        let lanes = lanes as u32;
        Columns {
            first: start + G::rank(cta) * lanes,
            step: G::size(cta) * lanes,
        }
    }

    /// Packs that follow one another.
    #[inline(always)]
    pub(crate) fn run(first: u32, lanes: u32) -> Columns {
        Columns { first, step: lanes }
    }

    /// The same, to be computed again where it is used: kept over the rows, the places of K packs take up to 60 registers
    /// (n = 1,024).
    #[inline(always)]
    pub(crate) fn fresh<C: Cta>(&self, cta: &C) -> Columns {
        Columns {
            first: cta.fresh(self.first),
            step: cta.fresh(self.step),
        }
    }

    #[inline(always)]
    pub(crate) fn at(&self, k: usize) -> u32 {
        self.first + k as u32 * self.step
    }
}

/// Packs of a vector of n elements, zero past its end.
#[inline(always)]
pub(crate) fn load_vector<C: Cta, T: Real, P: Pack<T>, const K: usize>(
    cta: &C,
    vector: In<'_, T>,
    columns: &Columns,
    cols: u32,
) -> [P; K] {
    let mut packs = [P::ZERO; K];
    for (k, pack) in packs.iter_mut().enumerate() {
        for (j, element) in pack.as_mut().iter_mut().enumerate() {
            let column = columns.at(k) + j as u32;
            if column < cols {
                *element = cta.load(vector, column as usize, Cache::Keep);
            }
        }
    }
    packs
}

/// A thread's packs of one row, zero where the row or the columns end.
#[inline(always)]
pub(crate) fn load_row<C: Cta, T: Real, P: Pack<T>, const K: usize>(
    cta: &C,
    args: &DenseArgs<'_, T>,
    columns: &Columns,
    row: u64,
) -> [P; K] {
    let mut packs = [P::ZERO; K];
    let start = row * args.ld;
    for (k, pack) in packs.iter_mut().enumerate() {
        let column = columns.at(k);
        if column < args.cols && row < args.rows as u64 {
            *pack = cta.load_pack(args.x, (start + column as u64) as usize, Cache::Once);
        }
    }
    packs
}

/// The R rows of this thread's team when its group is at row `first`: first + team, + TEAMS, …
#[inline(always)]
pub(crate) fn row_of<C: Cta, G: Team>(cta: &C, first: u64, i: usize) -> u64 {
    first + (i as u32 * G::TEAMS + G::team(cta)) as u64
}
