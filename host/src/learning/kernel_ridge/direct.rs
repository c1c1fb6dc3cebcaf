//! (K + λI)·a = t by a Cholesky factor of K + λI, in f64 on the host, refined until the residual is small enough. Of the members
//! of a group the first one has the factor.
//!
//! Source: Golub & Van Loan §4.2; refinement, Higham, *Accuracy and Stability*, ch. 12.

use faer::linalg::solvers::Solve;
use faer::{MatMut, MatRef, Side};

use super::solve::{Goal, Solved, norm};
use crate::device::group::Group;
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
    let Some(system) = System::new(exact, goal.alpha)? else {
        return Ok(None);
    };
    let (first, mut dual) = (norm(targets), vec![0.0; targets.len()]);
    let mut residual = targets.to_vec();
    let mut ratio = if first == 0.0 { 0.0 } else { 1.0 };
    let mut iterations = 0;
    while ratio > goal.tolerance && iterations < CORRECTIONS.min(goal.max_iter) {
        let step = system.solve(&residual)?;
        let moved: Vec<f64> = dual.iter().zip(step).map(|(a, step)| a + step).collect();
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

/// K + λI.
struct System<'a> {
    /// None on members of a group but the first.
    factor: Option<Factor>,
    group: Option<&'a Group>,
}

impl<'a> System<'a> {
    /// None where it is not positive definite to rounding.
    fn new(exact: &'a KernelSum<f64>, alpha: f64) -> Result<Option<System<'a>>, OpError> {
        let group = exact.device().group();
        let factor = match group {
            Some(group) if !group.is_first() => None,
            _ => factor(exact, alpha)?,
        };
        let mut is_there = [u8::from(factor.is_some())];
        if let Some(group) = group {
            group.broadcast(0, &mut is_there)?;
        }
        Ok((is_there == [1]).then_some(System { factor, group }))
    }

    /// x with (K + λI)·x = `right`, to the accuracy of the factor.
    fn solve(&self, right: &[f64]) -> Result<Vec<f64>, OpError> {
        let mut x = right.to_vec();
        if let Some(factor) = &self.factor {
            factor.solve_in_place(MatMut::from_column_major_slice_mut(&mut x, right.len(), 1));
        }
        if let Some(group) = self.group {
            group.broadcast(0, &mut x)?;
        }
        Ok(x)
    }
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
