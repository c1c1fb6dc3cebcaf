//! (K + λI)·a = t by a Cholesky factor of K + λI, in f64 on the host, refined until the residual is small enough.
//!
//! Source: Golub & Van Loan §4.2; refinement, Higham, *Accuracy and Stability*, ch. 12.

use faer::linalg::solvers::Solve;
use faer::{MatRef, Side};

use super::solve::{Goal, Solved, norm};
use crate::learning::{Convergence, Progress};
use crate::ops::{KernelSum, OpError};

/// Samples up to which K is formed: with its factor 576 MiB, and a second or two.
pub(super) const MOST_SAMPLES: usize = 6000;
/// Corrections of a solution: each takes about as many digits as the factor has.
const CORRECTIONS: usize = 4;

/// Solves, from `exact`, the sums over K in f64 on the CPU; `None` where K + λI is not positive definite to rounding.
pub(super) fn solve(
    exact: &KernelSum<f64>,
    targets: &[f64],
    goal: &Goal,
    mut watch: impl FnMut(Progress),
) -> Result<Option<Solved>, OpError> {
    let n = targets.len();
    let Some(factor) = factor(exact, goal.alpha)? else {
        return Ok(None);
    };
    let (first, mut dual) = (norm(targets), vec![0.0; n]);
    let mut residual = targets.to_vec();
    let mut ratio = if first == 0.0 { 0.0 } else { 1.0 };
    let mut iterations = 0;
    while ratio > goal.tolerance && iterations < CORRECTIONS.min(goal.max_iter) {
        let step = factor.solve(MatRef::from_column_major_slice(&residual, n, 1));
        let moved: Vec<f64> = (0..n).map(|i| dual[i] + step[(i, 0)]).collect();
        let next = super::solve::residual(exact, targets, &moved, goal.alpha)?;
        let shrunk = norm(&next) / first;
        iterations += 1;
        if shrunk.is_nan() || shrunk >= ratio {
            break;
        }
        (dual, residual, ratio) = (moved, next, shrunk);
        watch(Progress {
            iteration: iterations,
            max_iter: goal.max_iter,
            residual_ratio: ratio,
        });
    }
    let convergence = if ratio <= goal.tolerance {
        Convergence::Converged
    } else {
        Convergence::IterationLimit
    };
    Ok(Some(Solved {
        dual,
        iterations,
        convergence,
        residual_ratio: ratio,
    }))
}

type Factor = faer::linalg::solvers::Llt<f64>;

fn factor(exact: &KernelSum<f64>, alpha: f64) -> Result<Option<Factor>, OpError> {
    let n = exact.targets();
    let mut k = exact.lower_triangle()?;
    for i in 0..n {
        k[i * n + i] += alpha;
    }
    Ok(MatRef::from_column_major_slice(&k, n, n)
        .llt(Side::Lower)
        .ok())
}
