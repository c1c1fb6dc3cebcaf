//! Least squares by orthogonal factors of X̃ itself, whose condition is the root of that of the normal equations.
//!
//! Blocks of rows of √v·[X̃, b] are reduced to one triangle, whose singular values give the shortest solution: those below
//! rounding count as 0, so that of columns that depend on each other the coefficients are as small as they can be.
//!
//! Columns that are far from depending on each other, as the pivots of their normal equations tell, take those: a sixth of the
//! work, and as many digits after a step or two more.
//!
//! Source: Golub and Van Loan, "Matrix Computations", sections 5.3 and 5.5; the reduction: J. Demmel, L. Grigori,
//! M. Hoemmen, J. Langou, "Communication-optimal parallel and sequential QR and LU factorizations", SIAM J. Sci. Comput. 34,
//! 2012.

use std::time::Instant;

use faer::{Mat, MatRef};

use super::choice::{Chosen, Direct};
use super::groups::grouped;
use super::outcome::{Solved, Start, Watch};
use super::problem::{At, Problem};
use super::step::Step;
use crate::learning::cg::Convergence;
use crate::learning::solver::{Iteration, Limits, Solver, ratio};

/// Rows that are reduced at a time, relative to the columns.
const TALL: usize = 4;
/// Rows, relative to the columns, from which their normal equations are tried: else orthogonal factors take as long.
const LONG: usize = 2;
/// Share of a diagonal element that every pivot has to keep for columns to count as far from depending on each other: the
/// normal equations then keep ten digits, which a step more makes thirteen.
const INDEPENDENT: f64 = 1e-6;
/// Of the first gradient: what rounding leaves of it.
const ROUNDING: f64 = 1e-11;
/// A step by R has to shrink the gradient, in units of R, to this part at least.
const WORTHWHILE: f64 = 0.5;
/// Steps at most, each of which takes away what the one before left.
const MOST_STEPS: usize = 3;

/// The solution by Cholesky where columns are far from depending on each other, else by singular values.
pub(super) fn minimise(
    problem: &Problem<'_>,
    start: Start,
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Solved {
    let begun = Instant::now();
    let first = start.cold.unwrap_or(start.theta);
    if problem.design.rows() < LONG * problem.design.width() {
        let first = problem.at(first).norm;
        return factored(problem, (first, begun), limits, watch);
    }
    let (at, hessian) = problem.at_with_hessian(first);
    let first = at.norm;
    let found = hessian.and_then(|hessian| by_normal_equations(problem, at, &hessian));
    match found {
        Some((at, n_iter)) => Solved {
            instead: Some(Chosen {
                solver: Solver::NewtonCholesky,
                reason: "least squares without a penalty: columns far from depending on each other",
                direct: Some(Direct::LeastSquares),
            }),
            ..ended(at, (first, n_iter, begun), limits, watch)
        },
        None => factored(problem, (first, begun), limits, watch),
    }
}

/// The solution by singular values, whatever the point to start from.
pub(super) fn by_factors(
    problem: &Problem<'_>,
    start: Start,
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Solved {
    let begun = Instant::now();
    let first = problem.at(start.cold.unwrap_or(start.theta)).norm;
    factored(problem, (first, begun), limits, watch)
}

/// The solution by R, and steps by it that take away what rounding left; by singular values where columns depend on each other.
pub(super) fn by_triangle(
    problem: &Problem<'_>,
    start: Start,
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Solved {
    let begun = Instant::now();
    let first = problem.at(start.cold.unwrap_or(start.theta)).norm;
    let triangle = triangle(problem);
    let Some(free) = Free::of(problem, &triangle) else {
        let at = problem.at(shortest(problem, &triangle));
        return ended(at, (first, 1, begun), limits, watch);
    };
    let (mut at, mut n_iter) = (problem.at(free.solution()), 1);
    let mut left = free.turned(&at.gradient);
    while n_iter < MOST_STEPS {
        let step = free.back(&left);
        let moved = at.theta.iter().zip(step).map(|(x, d)| x - d);
        let next = problem.at(moved.collect());
        let now = free.turned(&next.gradient);
        // A NaN gains nothing.
        let gains = size(&now) < WORTHWHILE * size(&left);
        if !gains {
            break;
        }
        (at, left, n_iter) = (next, now, n_iter + 1);
    }
    ended(at, (first, n_iter, begun), limits, watch)
}

fn factored(
    problem: &Problem<'_>,
    (first, begun): (f64, Instant),
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Solved {
    let at = problem.at(shortest(problem, &triangle(problem)));
    ended(at, (first, 1, begun), limits, watch)
}

/// Newton's step from `at`, and such as take away what rounding left of the gradient; `None` where columns are near to
/// depending on each other, or the gradient stays.
fn by_normal_equations(problem: &Problem<'_>, at: At, hessian: &Mat<f64>) -> Option<(At, usize)> {
    let step = Step::of_independent(hessian, &problem.free(), INDEPENDENT)?;
    let (first, mut at) = (at.norm, at);
    for n_iter in 1..=MOST_STEPS {
        let moved = at.theta.iter().zip(step.direction(&at.gradient));
        let next = problem.at(moved.map(|(x, d)| x + d).collect());
        if next.norm <= ROUNDING * first {
            return Some((next, n_iter));
        }
        at = next;
    }
    None
}

/// How it ended, shown.
fn ended(
    at: At,
    (first, n_iter, begun): (f64, usize, Instant),
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Solved {
    let gradient_ratio = ratio(at.norm, first);
    let iteration = Iteration {
        objective: at.value,
        gradient_ratio,
        inner: n_iter,
        seconds: begun.elapsed().as_secs_f64(),
        validation: None,
    };
    // There is nothing left to break off.
    let _ = watch(iteration, &|| at.theta.clone());
    let convergence = if !(at.value.is_finite() && at.norm.is_finite()) {
        Convergence::NotFinite
    } else if at.norm <= limits.tolerance * first {
        Convergence::Converged
    } else {
        Convergence::PrecisionLimit
    };
    Solved {
        theta: at.theta,
        objective: at.value,
        gradient_ratio,
        gap: None,
        n_iter,
        convergence,
        instead: None,
    }
}

/// The least θ among the minima of `Σ v·(x̃·θ − b)² + Σ λ·θ²`.
fn shortest(problem: &Problem<'_>, triangle: &Mat<f64>) -> Vec<f64> {
    let width = problem.design.width();
    let (rows, free) = (triangle.nrows(), problem.free());
    let units = units(problem, triangle, &free);
    let left = Mat::from_fn(rows, free.len(), |i, a| units[a] * triangle[(i, free[a])]);
    let mut theta = vec![0.0; width];
    let Ok(svd) = left.thin_svd() else {
        theta.fill(f64::NAN);
        return theta;
    };
    let values: Vec<f64> = (0..rows.min(free.len())).map(|a| svd.S()[a]).collect();
    let top = values.first().copied().unwrap_or(0.0);
    let longest = problem.design.rows().max(width) as f64;
    let limit = f64::EPSILON * longest * top;
    for (a, value) in values
        .iter()
        .enumerate()
        .filter(|(_, value)| **value > limit)
    {
        let along: f64 = (0..rows)
            .map(|i| svd.U()[(i, a)] * triangle[(i, width)])
            .sum();
        for (b, &j) in free.iter().enumerate() {
            theta[j] += along / value * svd.V()[(b, a)] * units[b];
        }
    }
    theta
}

/// R of the columns that move, and Qᵀb as its last column.
struct Free {
    r: Mat<f64>,
    columns: Vec<usize>,
    width: usize,
}

impl Free {
    /// `None` where an element of R's diagonal is down to the rounding of its column: then columns depend on each other, and
    /// there are many solutions.
    fn of(problem: &Problem<'_>, triangle: &Mat<f64>) -> Option<Free> {
        let (width, columns) = (problem.design.width(), problem.free());
        // Columns that are held are 0: R of the others is no triangle.
        let left = Mat::from_fn(triangle.nrows(), columns.len() + 1, |i, a| {
            triangle[(i, columns.get(a).copied().unwrap_or(width))]
        });
        let r = left.qr().thin_R().to_owned();
        let longest = problem.design.rows().max(width) as f64;
        let stands_out = |a: usize| {
            let pivot = if a < r.nrows() { r[(a, a)].abs() } else { 0.0 };
            pivot.is_finite() && pivot > f64::EPSILON * longest * r.col(a).norm_l2()
        };
        (0..columns.len())
            .all(stands_out)
            .then(|| Free { r, columns, width })
    }

    fn solution(&self) -> Vec<f64> {
        let last = self.columns.len();
        let of_targets: Vec<f64> = (0..last).map(|i| self.r[(i, last)]).collect();
        self.back(&of_targets)
    }

    /// R⁻¹·x as θ, the last row first.
    fn back(&self, x: &[f64]) -> Vec<f64> {
        let mut theta = vec![0.0; self.width];
        for a in (0..x.len()).rev() {
            let after = a + 1..x.len();
            let sum: f64 = after.map(|b| self.r[(a, b)] * theta[self.columns[b]]).sum();
            theta[self.columns[a]] = (x[a] - sum) / self.r[(a, a)];
        }
        theta
    }

    /// R⁻ᵀ·gradient, the first row first.
    fn turned(&self, gradient: &[f64]) -> Vec<f64> {
        let mut x: Vec<f64> = Vec::with_capacity(self.columns.len());
        for (a, &column) in self.columns.iter().enumerate() {
            let sum: f64 = x.iter().enumerate().map(|(b, x)| self.r[(b, a)] * x).sum();
            x.push((gradient[column] - sum) / self.r[(a, a)]);
        }
        x
    }
}

fn size(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// What columns are multiplied by, so that singular values compare: 1, and for the intercept what makes its column as long as
/// the longest other one. In units of X its length says nothing: beside columns of 1e20 it would count as rounding, beside
/// columns of 1e-20 they would.
fn units(problem: &Problem<'_>, triangle: &Mat<f64>, free: &[usize]) -> Vec<f64> {
    let length = |j: usize| triangle.col(j).norm_l2();
    let is_intercept = |j: usize| j >= problem.columns() && problem.spec.intercept_l2 == 0.0;
    let others = free.iter().filter(|j| !is_intercept(**j));
    let longest = others.fold(0.0_f64, |longest, j| longest.max(length(*j)));
    let unit = |j: &usize| match is_intercept(*j) && longest > 0.0 && length(*j) > 0.0 {
        true => longest / length(*j),
        false => 1.0,
    };
    free.iter().map(unit).collect()
}

/// R of √v·[X̃, b] with the ridge's rows below: `width + 1` columns, and no more rows than that.
fn triangle(problem: &Problem<'_>) -> Mat<f64> {
    let width = problem.design.width();
    let per_row = 2 * (width + 1) * (width + 1);
    let parts = grouped(problem.design.rows(), per_row, |rows| {
        let mut kept = Mat::<f64>::zeros(0, width + 1);
        let mut waiting: Vec<f64> = Vec::new();
        problem.design.for_blocks(rows, |at, block| {
            for (i, row) in at.enumerate() {
                let root = problem.weights[row].sqrt();
                waiting.extend(block.row(i).iter().map(|x| root * x));
                let offset = problem.offset.map_or(0.0, |offset| offset[row]);
                waiting.push(root * (problem.targets[row] - offset));
            }
            if waiting.len() >= TALL * (width + 1) * (width + 1) {
                kept = reduced(&kept, &waiting);
                waiting.clear();
            }
        });
        reduced(&kept, &waiting)
    });
    let mut below = Vec::new();
    for part in parts {
        for i in 0..part.nrows() {
            below.extend(part.row(i).iter().copied());
        }
    }
    let ridge = (0..width).map(|j| problem.l2(j)).enumerate();
    for (j, l2) in ridge.filter(|(_, l2)| *l2 > 0.0) {
        let from = below.len();
        below.resize(from + width + 1, 0.0);
        below[from + j] = l2.sqrt();
    }
    reduced(&Mat::zeros(0, width + 1), &below)
}

/// R of some rows above others, given row by row; as they are where they are not more than columns.
fn reduced(above: &Mat<f64>, below: &[f64]) -> Mat<f64> {
    let width = above.ncols();
    let rows = below.len() / width;
    let below = MatRef::from_row_major_slice(below, rows, width);
    let kept = above.nrows();
    let all = Mat::from_fn(kept + rows, width, |i, j| {
        if i < kept {
            above[(i, j)]
        } else {
            below[(i - kept, j)]
        }
    });
    if all.nrows() <= width {
        return all;
    }
    all.qr().thin_R().to_owned()
}
