//! Pieces of a loss with kinks and of an l1 term, with their variables. Every pass over them uses all cores, and gives the
//! same bits with any number of them.

use crate::learning::solver::host::problem::Problem;
use crate::learning::spec::{Kinked, Piece};
use crate::parallel;

/// a, p and q of a piece, or a direction of them.
pub(super) type Variables = [f64; 3];

/// Pieces of the rows, row by row, and behind them those of coordinates of θ.
pub(super) struct Pieces {
    /// Where the pieces of every row begin; one more for the end of the last.
    starts: Vec<usize>,
    /// The row of each piece of a row.
    rows: Vec<usize>,
    /// The coordinate of each piece behind them.
    coordinates: Vec<usize>,
    pub(super) piece: Vec<Piece>,
    pub(super) at: Vec<Variables>,
}

/// A value of every row, and one of every coordinate: what pieces are multiplied with, and what they add up to.
pub(super) struct Both<'a> {
    pub(super) rows: &'a [f64],
    pub(super) coordinates: &'a [f64],
}

impl Pieces {
    /// Halfway between the bounds of a; p and q are 0.
    pub(super) fn of(problem: &Problem<'_>, loss: Kinked) -> Pieces {
        let (mut starts, mut rows, mut piece) = (vec![0], Vec::new(), Vec::new());
        for (i, (b, v)) in problem.targets.iter().zip(problem.weights).enumerate() {
            for part in loss.pieces(*b, *v).filter(|part| part.high > part.low) {
                rows.push(i);
                piece.push(part);
            }
            starts.push(rows.len());
        }
        let l1 = |j: &usize| problem.kink(*j).l1;
        let penalised = (0..problem.len()).filter(|j| !problem.held[*j] && l1(j) > 0.0);
        let coordinates: Vec<usize> = penalised.collect();
        piece.extend(coordinates.iter().map(|j| Piece {
            target: 0.0,
            low: -l1(j),
            high: l1(j),
        }));
        let middle = |piece: &Piece| [0.5 * (piece.low + piece.high), 0.0, 0.0];
        Pieces {
            at: parallel::convert(&piece, middle),
            starts,
            rows,
            coordinates,
            piece,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.piece.len()
    }

    /// The row of piece n; `None` where it is of a coordinate.
    pub(super) fn row(&self, n: usize) -> Option<usize> {
        self.rows.get(n).copied()
    }

    /// What piece n is multiplied with.
    pub(super) fn value(&self, n: usize, of: &Both<'_>) -> f64 {
        match self.rows.get(n) {
            Some(row) => of.rows[*row],
            None => of.coordinates[self.coordinates[n - self.rows.len()]],
        }
    }

    /// Sums of `term` over the pieces of every row, and over those of every coordinate, `len` of them.
    pub(super) fn gathered(
        &self,
        len: usize,
        term: impl Fn(usize) -> f64 + Sync,
    ) -> (Vec<f64>, Vec<f64>) {
        let of_row = |i: usize| (self.starts[i]..self.starts[i + 1]).map(&term).sum();
        let rows = parallel::filled(self.starts.len() - 1, of_row);
        let mut coordinates = vec![0.0; len];
        for (number, j) in self.coordinates.iter().enumerate() {
            coordinates[*j] += term(self.rows.len() + number);
        }
        (rows, coordinates)
    }

    /// From a to its bounds; never less than rounding.
    pub(super) fn distances(&self, n: usize) -> (f64, f64) {
        let (Piece { low, high, .. }, [a, ..]) = (self.piece[n], self.at[n]);
        let least = f64::EPSILON * (high - low);
        ((high - a).max(least), (a - low).max(least))
    }

    /// 1/(p/s + q/r).
    pub(super) fn softness(&self, n: usize) -> f64 {
        let ((s, r), [_, p, q]) = (self.distances(n), self.at[n]);
        1.0 / (p / s + q / r).max(f64::MIN_POSITIVE)
    }

    /// The mean of p·s and q·r.
    pub(super) fn mean_product(&self) -> f64 {
        let sum = parallel::sum(self.len(), |n| {
            let ((s, r), [_, p, q]) = (self.distances(n), self.at[n]);
            p * s + q * r
        });
        sum / (2 * self.len().max(1)) as f64
    }

    /// The same after a step of length `t`.
    pub(super) fn mean_product_after(&self, step: &[Variables], t: f64) -> f64 {
        let sum = parallel::sum(self.len(), |n| {
            let ((s, r), [_, p, q]) = (self.distances(n), self.at[n]);
            let [by_a, by_p, by_q] = step[n];
            (p + t * by_p) * (s - t * by_a) + (q + t * by_q) * (r + t * by_a)
        });
        sum / (2 * self.len().max(1)) as f64
    }

    /// The longest step, 1 at most, that leaves `share` of the way to every bound.
    pub(super) fn reach(&self, step: &[Variables], share: f64) -> f64 {
        parallel::least(self.len(), |n| {
            let ((s, r), [_, p, q]) = (self.distances(n), self.at[n]);
            let [by_a, by_p, by_q] = step[n];
            let held = |from: f64, by: f64| match by < 0.0 {
                true => share * from / -by,
                false => 1.0,
            };
            let of_a = held(s, -by_a).min(held(r, by_a));
            of_a.min(held(p, by_p)).min(held(q, by_q))
        })
        .min(1.0)
    }

    /// Goes `reach` of a step.
    pub(super) fn walk(&mut self, step: &[Variables], reach: f64) {
        parallel::update(&mut self.at, |n, at| {
            for (at, by) in at.iter_mut().zip(step[n]) {
                *at += reach * by;
            }
        });
    }
}
