//! More columns than rows: the same problem over as many coordinates as there are rows.
//!
//! Without an l1 term the best coefficients of each predictor lie in the space of the rows, w = Q·z with X̃ᵀ = Q·R and
//! orthogonal columns of Q: then X̃·w = Rᵀ·z and ‖w‖ = ‖z‖, whatever the loss. m coordinates are solved for instead of n.
//!
//! Source: T. Hastie, R. Tibshirani, "Efficient quadratic regularization for expression arrays", Biostatistics 5, 2004.

use faer::{Mat, MatRef};

use super::choice::Direct;
use super::design::HostDesign;
use super::outcome::{Solved, Start, Watch};
use super::problem::Problem;
use super::run;
use crate::learning::solver::{Iteration, Limits};

/// Elements of X̃ up to which it is written out for its factors: 128 MiB.
pub(super) const MOST_ELEMENTS: f64 = (1 << 24) as f64;

/// Whether a problem is solved over its rows.
pub(super) fn is_wide(problem: &Problem<'_>) -> bool {
    let (m, n) = (problem.design.rows(), problem.columns());
    n > m && m as f64 * n as f64 <= MOST_ELEMENTS && problem.spec.l1 == 0.0
}

/// Minimises over the rows, by the method that the problem itself was to be solved by.
pub(super) fn minimise(
    problem: &Problem<'_>,
    method: Direct,
    start: Start,
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Solved {
    let space = RowSpace::new(problem);
    let part = space.problem(problem);
    let begin = Start {
        theta: space.narrow(&start.theta),
        cold: start.cold.map(|cold| space.narrow(&cold)),
    };
    let mut show = |iteration: Iteration, theta: &[f64]| watch(iteration, &space.widen(theta));
    let solved = run::minimise(&part, method, begin, limits, &mut show);
    Solved {
        theta: space.widen(&solved.theta),
        ..solved
    }
}

/// The space of the rows of X̃ without its column of ones.
struct RowSpace {
    /// n × m.
    q: Mat<f64>,
    /// Rᵀ, row by row, with the column of ones.
    rows: Vec<f64>,
    predictors: usize,
    intercept: bool,
}

impl RowSpace {
    fn new(problem: &Problem<'_>) -> RowSpace {
        let (m, n) = (problem.design.rows(), problem.columns());
        let mut transposed = Mat::<f64>::zeros(n, m);
        problem.design.for_blocks(0..m, |at, block| {
            for (i, row) in at.zip(0..) {
                let column = transposed.col_as_slice_mut(i);
                for (j, out) in column.iter_mut().enumerate() {
                    *out = if problem.held[j] {
                        0.0
                    } else {
                        block[(row, j)]
                    };
                }
            }
        });
        let factors = transposed.qr();
        let (q, r) = (factors.compute_thin_Q(), factors.thin_R());
        let width = m + usize::from(problem.intercept);
        let mut rows = vec![0.0; m * width];
        for (i, row) in rows.chunks_exact_mut(width).enumerate() {
            for (j, out) in row.iter_mut().enumerate().take(i + 1) {
                *out = r[(j, i)];
            }
            row[m..].fill(1.0);
        }
        RowSpace {
            q,
            rows,
            predictors: problem.predictors(),
            intercept: problem.intercept,
        }
    }

    fn problem<'a>(&self, of: &Problem<'a>) -> Problem<'a> {
        let m = self.q.ncols();
        let width = m + usize::from(self.intercept);
        Problem {
            design: HostDesign::of_values(m, width, self.rows.clone()),
            spec: of.spec,
            targets: of.targets,
            weights: of.weights,
            intercept: of.intercept,
            held: vec![false; width],
        }
    }

    /// Coordinates in the space: what lies outside it changes no prediction.
    fn narrow(&self, theta: &[f64]) -> Vec<f64> {
        self.times(self.q.transpose(), theta)
    }

    /// Coefficients of the columns.
    fn widen(&self, theta: &[f64]) -> Vec<f64> {
        self.times(self.q.as_ref(), theta)
    }

    /// The product with the coefficients; intercepts stay as they are.
    fn times(&self, by: MatRef<'_, f64>, theta: &[f64]) -> Vec<f64> {
        let k = self.predictors;
        let (coef, intercepts) = theta.split_at(by.ncols() * k);
        let product = by * MatRef::from_row_major_slice(coef, by.ncols(), k);
        let mut out: Vec<f64> = (0..by.nrows() * k)
            .map(|i| product[(i / k, i % k)])
            .collect();
        out.extend(intercepts);
        out
    }
}
