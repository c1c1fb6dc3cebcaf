//! The Hessian of one predictor by products with the stored entries of a sparse X, and its diagonal.
//!
//! H = X̃ᵀ·diag(d)·X̃ + λ. A product reads each stored entry of the rows with d ≠ 0 once: the row's product with the direction,
//! times d, is added to the columns while the row is in the nearest cache. Of a squared hinge those are the rows inside the
//! margin, as in LIBLINEAR's trust-region solver; here they are listed once for each point.
//!
//! Rows are cut into groups of about equal numbers by the shape alone; each group adds into columns of its own, which are added
//! in order: the same bits come out of any number of threads. A direction's element and the sum of its column lie side by
//! side: the line of the cache that a row's product has fetched is the one that the row adds to.
//!
//! Source: C.-J. Lin, R. Weng, S. Keerthi, "Trust region Newton method for logistic regression", JMLR 9, 2008; the
//! preconditioner: C.-Y. Hsia, W.-L. Chiang, C.-J. Lin, "Preconditioned conjugate gradient methods in truncated Newton
//! frameworks for large-scale linear classification", ACML 2018.

use std::sync::Mutex;

use super::groups::{added, cut};
use super::inner::Curved;
use super::problem::{At, Problem};
use super::streamed::SparseProducts;
use crate::parallel::locked;

/// Stored entries that are worth a thread of their own: some ten microseconds.
const MIN_ENTRIES: usize = 1 << 14;
/// The same, relative to the columns that a group adds into.
const PER_COLUMN: usize = 4;
/// Inner iterations of one direction: at least, and in all.
const FEW: usize = 20;
const MOST: usize = 2000;

/// The Hessian at a point.
pub(super) struct OfStored<'a> {
    problem: &'a Problem<'a>,
    x: &'a dyn SparseProducts,
    /// Of the rows that have any, and d of each.
    rows: Vec<u32>,
    curvatures: Vec<f64>,
    groups: usize,
    pairs: Kept,
    /// 1 / H_jj, 0 for columns that are held.
    inverse: Vec<f64>,
}

impl<'a> OfStored<'a> {
    /// `None` where X̃ is not read by its stored entries.
    pub(super) fn new(problem: &'a Problem<'a>, at: &At) -> Option<OfStored<'a>> {
        let x = problem.design.sparse_products()?;
        let kept = at.judged.kept.iter().enumerate();
        let (rows, curvatures): (Vec<u32>, Vec<f64>) = kept
            .filter(|(_, d)| **d != 0.0)
            .map(|(row, d)| (row as u32, *d))
            .unzip();
        let width = problem.design.width();
        let entries = (x.mean_entries() * rows.len() as f64) as usize;
        let mut hessian = OfStored {
            groups: entries / MIN_ENTRIES.max(PER_COLUMN * width),
            pairs: Kept::default(),
            inverse: Vec::new(),
            problem,
            x,
            rows,
            curvatures,
        };
        hessian.inverse = hessian.inverse_diagonal();
        Some(hessian)
    }

    /// Whether a product is worth several threads.
    pub(super) fn is_parallel(&self) -> bool {
        self.groups > 1
    }

    fn inverse_diagonal(&self) -> Vec<f64> {
        let parts = cut(self.rows.len(), self.groups, |own| {
            let rows = (&self.rows[own.clone()], &self.curvatures[own]);
            self.x.weighted_squares(rows)
        });
        let diagonal = self
            .x
            .centred_squares(added(parts), self.problem.design.width());
        let each = diagonal.into_iter().enumerate();
        let inverse = each.map(|(j, squares)| {
            let bend = squares + self.problem.l2(j);
            if self.problem.held[j] || bend <= 0.0 {
                0.0
            } else {
                bend.recip()
            }
        });
        inverse.collect()
    }
}

impl Curved for OfStored<'_> {
    fn product(&self, direction: &[f64], out: &mut Vec<f64>) {
        let entered = self.x.enter(direction, 1);
        let parts = cut(self.rows.len(), self.groups, |own| {
            let mut pairs = self.pairs.take();
            let both = entered.coef.iter().map(|w| [*w, 0.0]);
            pairs.clear();
            pairs.extend(both);
            let rows = (&self.rows[own.clone()], &self.curvatures[own]);
            let to = (&mut pairs[..], entered.constants[0]);
            let total = self.x.curved(to, rows);
            (pairs, total)
        });
        out.clear();
        out.resize(entered.coef.len(), 0.0);
        let mut total = 0.0;
        for (pairs, part) in parts {
            total += part;
            let both = out.iter_mut().zip(&pairs);
            both.for_each(|(sum, pair)| *sum += pair[1]);
            self.pairs.give_back(pairs);
        }
        self.x.leave(out, total, direction.len());
        for (i, (out, d)) in out.iter_mut().zip(direction).enumerate() {
            *out += self.problem.l2(i) * d;
        }
    }

    fn precondition(&self, residual: &[f64], out: &mut Vec<f64>) {
        let pairs = residual.iter().zip(&self.inverse);
        out.clear();
        out.extend(pairs.map(|(r, inverse)| r * inverse));
    }

    fn most(&self) -> usize {
        (2 * self.inverse.len()).clamp(FEW, MOST)
    }
}

/// Directions and sums of groups, kept from one product to the next: as many as groups that ran side by side. Memory of the
/// system has to be cleared page by page, which takes longer than few rows of many columns.
#[derive(Default)]
struct Kept(Mutex<Vec<Vec<[f64; 2]>>>);

impl Kept {
    /// Of any length and content.
    fn take(&self) -> Vec<[f64; 2]> {
        locked(&self.0).pop().unwrap_or_default()
    }

    fn give_back(&self, pairs: Vec<[f64; 2]>) {
        locked(&self.0).push(pairs);
    }
}
