//! Least squares by orthogonal factors of X̃ itself, whose condition is the root of that of the normal equations.
//!
//! Blocks of rows of √v·[X̃, b] are reduced to one triangle, whose singular values give the shortest solution: those below
//! rounding count as 0, so that of columns that depend on each other the coefficients are as small as they can be.
//!
//! Source: Golub and Van Loan, "Matrix Computations", sections 5.3 and 5.5; the reduction: J. Demmel, L. Grigori,
//! M. Hoemmen, J. Langou, "Communication-optimal parallel and sequential QR and LU factorizations", SIAM J. Sci. Comput. 34,
//! 2012.

use std::time::Instant;

use faer::{Mat, MatRef};

use super::design::grouped;
use super::outcome::{Solved, Start, Watch};
use super::problem::Problem;
use crate::learning::cg::Convergence;
use crate::learning::solver::{Iteration, Limits, ratio};

/// Rows that are reduced at a time, relative to the columns.
const TALL: usize = 4;

/// The solution by singular values, whatever the point to start from.
pub(super) fn minimise(
    problem: &Problem<'_>,
    start: Start,
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Solved {
    let begun = Instant::now();
    let first = problem.at(start.cold.unwrap_or(start.theta)).norm;
    let theta = shortest(problem);
    let at = problem.at(theta);
    let gradient_ratio = ratio(at.norm, first);
    let iteration = Iteration {
        objective: at.value,
        gradient_ratio,
        inner: 1,
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
        n_iter: 1,
        convergence,
    }
}

/// The least θ among the minima of `Σ v·(x̃·θ − b)² + Σ λ·θ²`.
fn shortest(problem: &Problem<'_>) -> Vec<f64> {
    let width = problem.design.width();
    let triangle = triangle(problem);
    let (rows, free) = (triangle.nrows(), problem.free());
    let left = Mat::from_fn(rows, free.len(), |i, a| triangle[(i, free[a])]);
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
            theta[j] += along / value * svd.V()[(b, a)];
        }
    }
    theta
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
