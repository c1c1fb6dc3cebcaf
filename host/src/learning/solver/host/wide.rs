//! More columns than rows: the same problem over as many coordinates as there are rows.
//!
//! Without an l1 term the best coefficients of each predictor lie in the space of the rows, w = Q·z with X̃ᵀ = Q·R and
//! orthogonal columns of Q: then X̃·w = Rᵀ·z and ‖w‖ = ‖z‖, whatever the loss. m coordinates are solved for instead of n.
//!
//!
//! With a ridge, R comes from the Gram matrix of the rows: X̃·X̃ᵀ = Rᵀ·R takes a quarter of the work of orthogonal columns,
//! and coefficients are w = X̃ᵀ·R⁻¹·z. Rows that nearly depend on each other are left to orthogonal columns, whose rounding
//! the condition of X̃ does not square.
//!
//! Sources: T. Hastie, R. Tibshirani, "Efficient quadratic regularization for expression arrays", Biostatistics 5, 2004;
//! G. Golub, C. Van Loan, "Matrix Computations", section 5.3 (what the normal equations cost in accuracy).

use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::{Mat, MatRef, Par, Side};

use super::choice::{Direct, MOST_ELEMENTS, MOST_STREAMED};
use super::design::HostDesign;
use super::outcome::{Solved, Start, Watch};
use super::problem::Problem;
use super::run;
use crate::learning::solver::{Iteration, Limits};

/// Whether a problem is solved over its rows.
pub(super) fn is_wide(problem: &Problem<'_>) -> bool {
    let (m, n) = (problem.design.rows(), problem.columns());
    let is_round = !problem.has_kinks() && problem.factors.is_none();
    let streams = problem.spec.l2 > 0.0 && !problem.design.is_sparse();
    let most = if streams {
        MOST_STREAMED
    } else {
        MOST_ELEMENTS
    };
    n > m && m as f64 * n as f64 <= most && is_round
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
    let part = space.reduced(problem);
    let begin = Start {
        theta: space.narrow(&start.theta),
        cold: start.cold.map(|cold| space.narrow(&cold)),
        found: start.found,
    };
    let mut show = |iteration: Iteration, theta: &dyn Fn() -> Vec<f64>| {
        watch(iteration, &|| space.widen(&theta()))
    };
    let solved = run::minimise(&part, method, begin, limits, &mut show);
    Solved {
        theta: space.widen(&solved.theta),
        ..solved
    }
}

/// The space of the rows of X̃ without its column of ones.
struct RowSpace<'a, 'p> {
    problem: &'a Problem<'p>,
    basis: Basis,
}

/// Coordinates in the space.
enum Basis {
    /// By orthogonal columns Q (n × m) and R.
    Orthogonal { q: Mat<f64>, r: Mat<f64> },
    /// By L of X̃·X̃ᵀ + `shift`·11ᵀ = L·Lᵀ.
    Gram { l: Mat<f64>, shift: f64 },
}

/// Share of the largest pivot below which rows count as nearly dependent: coefficients then keep eight digits of those
/// that z has.
const DEPENDENT: f64 = 1e-8;

/// Share of the largest element of R below which elements are rounding.
const NOTHING: f64 = 1e-13;

impl<'a, 'p> RowSpace<'a, 'p> {
    fn new(problem: &'a Problem<'p>) -> Self {
        let basis = Basis::by_gram(problem).unwrap_or_else(|| Basis::orthogonal(problem));
        RowSpace { problem, basis }
    }

    /// The problem over the coordinates.
    fn reduced(&self, of: &Problem<'p>) -> Problem<'p> {
        let m = of.design.rows();
        let width = m + usize::from(of.intercept);
        let mut rows = vec![0.0; m * width];
        for (i, row) in rows.chunks_exact_mut(width).enumerate() {
            for (j, out) in row.iter_mut().enumerate().take(i + 1) {
                *out = match &self.basis {
                    Basis::Orthogonal { r, .. } => r[(j, i)],
                    Basis::Gram { l, .. } => l[(i, j)],
                };
            }
            row[m..].fill(1.0);
        }
        Problem {
            design: HostDesign::of_values(m, width, rows),
            spec: of.spec,
            targets: of.targets,
            weights: of.weights,
            intercept: of.intercept,
            held: self.still(width),
            offset: of.offset,
            factors: None,
            non_negative: false,
        }
    }

    /// Coordinates that no row has a part of, as rows that are centred leave one: at any value predictions are the same, but
    /// for rounding, which large values would make all there is.
    fn still(&self, width: usize) -> Vec<bool> {
        let mut still = vec![false; width];
        if let Basis::Orthogonal { r, .. } = &self.basis {
            let largest = |j: usize| {
                let part = (j..r.ncols()).map(|i| r[(j, i)].abs());
                part.fold(0.0, f64::max)
            };
            let most = (0..r.nrows()).map(largest).fold(0.0, f64::max);
            for (j, still) in still.iter_mut().enumerate().take(r.nrows()) {
                *still = largest(j) <= NOTHING * most;
            }
        }
        still
    }

    /// Coordinates in the space: what lies outside it changes no prediction.
    fn narrow(&self, theta: &[f64]) -> Vec<f64> {
        let k = self.problem.predictors();
        let (coef, intercepts) = theta.split_at(self.problem.columns() * k);
        match &self.basis {
            Basis::Orthogonal { q, .. } => times(q.transpose(), theta, k),
            Basis::Gram { l, .. } => {
                let mut all = coef.to_vec();
                all.resize(theta.len(), 0.0);
                let predictors = self.problem.design.predictors(&all, k);
                let mut z = Mat::from_fn(l.nrows(), k, |i, c| predictors[i * k + c]);
                solve_lower_triangular_in_place(l.as_ref(), z.as_mut(), Par::Seq);
                joined(&z, intercepts)
            }
        }
    }

    /// Coefficients of the columns.
    fn widen(&self, theta: &[f64]) -> Vec<f64> {
        let (m, k) = (self.problem.design.rows(), self.problem.predictors());
        match &self.basis {
            Basis::Orthogonal { q, .. } => times(q.as_ref(), theta, k),
            Basis::Gram { l, shift } => {
                let (z, intercepts) = theta.split_at(m * k);
                let mut a = Mat::from_fn(m, k, |i, c| z[i * k + c]);
                solve_upper_triangular_in_place(l.transpose(), a.as_mut(), Par::Seq);
                let of_rows = joined(&a, &[]);
                let mut out = self.problem.design.transposed(&of_rows, k);
                let n = self.problem.columns() * k;
                let held = &self.problem.held;
                out.truncate(n);
                let still = out.iter_mut().enumerate().filter(|(i, _)| held[i / k]);
                still.for_each(|(_, w)| *w = 0.0);
                // The column that `shift` stands for is a part of the intercept.
                let more = |(c, b): (usize, &f64)| b + shift * a.col(c).iter().sum::<f64>();
                out.extend(intercepts.iter().enumerate().map(more));
                out
            }
        }
    }
}

impl Basis {
    /// `None` without a ridge, or where rows nearly depend on each other.
    ///
    /// Rows that are centred add up to 0. A column of equal elements more makes them independent: beside an intercept that
    /// costs nothing its coefficient is 0 at the minimum.
    fn by_gram(problem: &Problem<'_>) -> Option<Basis> {
        if problem.spec.l2 == 0.0 {
            return None;
        }
        let m = problem.design.rows();
        let mut gram = problem.design.row_gram(problem.columns(), &problem.held);
        let mean = (0..m).map(|i| gram[(i, i)]).sum::<f64>() / m as f64;
        let is_free = problem.intercept && problem.spec.intercept_l2 == 0.0;
        let shift = if is_free { mean / m as f64 } else { 0.0 };
        for j in 0..m {
            for i in j..m {
                gram[(i, j)] += shift;
            }
        }
        let l = gram.llt(Side::Lower).ok()?.L().to_owned();
        let pivots = || (0..m).map(|i| l[(i, i)].powi(2));
        let (least, most) = (
            pivots().fold(f64::INFINITY, f64::min),
            pivots().fold(0.0, f64::max),
        );
        (least > DEPENDENT * most).then_some(Basis::Gram { l, shift })
    }

    fn orthogonal(problem: &Problem<'_>) -> Basis {
        let (m, n) = (problem.design.rows(), problem.columns());
        let mut transposed = Mat::<f64>::zeros(n, m);
        problem.design.for_blocks(0..m, |at, block| {
            for (i, row) in at.zip(0..) {
                let column = transposed.col_as_slice_mut(i);
                for (j, out) in column.iter_mut().enumerate() {
                    let is_held = problem.held[j];
                    *out = if is_held { 0.0 } else { block[(row, j)] };
                }
            }
        });
        let factors = transposed.qr();
        Basis::Orthogonal {
            q: factors.compute_thin_Q(),
            r: factors.thin_R().to_owned(),
        }
    }
}

/// The product with the coefficients; intercepts stay as they are.
fn times(by: MatRef<'_, f64>, theta: &[f64], k: usize) -> Vec<f64> {
    let (coef, intercepts) = theta.split_at(by.ncols() * k);
    let product = by * MatRef::from_row_major_slice(coef, by.ncols(), k);
    joined(&product, intercepts)
}

/// Row by row, and intercepts.
fn joined(rows: &Mat<f64>, intercepts: &[f64]) -> Vec<f64> {
    let k = rows.ncols().max(1);
    let of_rows = (0..rows.nrows() * k).map(|i| rows[(i / k, i % k)]);
    of_rows.chain(intercepts.iter().copied()).collect()
}
