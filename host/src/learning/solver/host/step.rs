//! Newton steps without an l1 term.

use faer::linalg::solvers::Solve;
use faer::{Mat, Side};

use crate::ops::clear_upper;

/// Share of a diagonal element that the factor's may fall to before columns count as dependent, in units of rounding times
/// the number of coordinates.
const DEPENDENT: f64 = 1e3;

/// H·d = −g over the free coordinates: by Cholesky, or where they depend on each other the shortest such d (in units in
/// which the diagonal is 1) by eigenvalues.
pub(super) struct Step {
    free: Vec<usize>,
    /// 1/√H_jj.
    scales: Vec<f64>,
    solver: Solver,
}

enum Solver {
    Cholesky(faer::linalg::solvers::Llt<f64>),
    Eigen {
        vectors: Mat<f64>,
        inverse: Vec<f64>,
    },
}

impl Step {
    /// Of a Hessian that is finite; coordinates without curvature do not move.
    pub(super) fn new(hessian: &Mat<f64>, free: &[usize]) -> Step {
        let (scaled, step) = Step::scaled(hessian, free);
        let limit = DEPENDENT * f64::EPSILON * scaled.nrows() as f64;
        step(cholesky(&scaled, limit).unwrap_or_else(|| eigen(&scaled)))
    }

    /// [`Step::new`] where every pivot keeps this share of its diagonal element.
    pub(super) fn of_independent(hessian: &Mat<f64>, free: &[usize], share: f64) -> Option<Step> {
        let (scaled, step) = Step::scaled(hessian, free);
        cholesky(&scaled, share).map(step)
    }

    /// The Hessian of the coordinates that move, with ones on its diagonal, and what makes a step of its solver.
    fn scaled(hessian: &Mat<f64>, free: &[usize]) -> (Mat<f64>, impl FnOnce(Solver) -> Step) {
        let moves = |j: &usize| hessian[(*j, *j)] > 0.0;
        let free: Vec<usize> = free.iter().copied().filter(moves).collect();
        let scales: Vec<f64> = free
            .iter()
            .map(|&j| hessian[(j, j)].sqrt().recip())
            .collect();
        let scaled = Mat::from_fn(free.len(), free.len(), |a, b| {
            scales[a] * scales[b] * hessian[(free[a], free[b])]
        });
        let step = |solver| Step {
            free,
            scales,
            solver,
        };
        (scaled, step)
    }

    /// −H⁻¹·g, 0 for coordinates that do not move.
    pub(super) fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        let count = self.free.len();
        let right = Mat::from_fn(count, 1, |a, _| -self.scales[a] * gradient[self.free[a]]);
        let scaled = match &self.solver {
            Solver::Cholesky(factor) => {
                let solved = factor.solve(right);
                clear_upper();
                solved
            }
            Solver::Eigen { vectors, inverse } => {
                let mut along = vectors.transpose() * &right;
                for (a, inverse) in inverse.iter().enumerate() {
                    along[(a, 0)] *= inverse;
                }
                vectors * along
            }
        };
        let mut direction = vec![0.0; gradient.len()];
        for (a, &j) in self.free.iter().enumerate() {
            direction[j] = self.scales[a] * scaled[(a, 0)];
        }
        direction
    }
}

/// Unless a pivot of no more than `limit` says that columns depend on each other.
fn cholesky(scaled: &Mat<f64>, limit: f64) -> Option<Solver> {
    let factor = scaled.llt(Side::Lower).ok();
    clear_upper();
    let factor = factor?;
    let least = (0..scaled.nrows())
        .map(|a| factor.L()[(a, a)].powi(2))
        .fold(1.0, f64::min);
    (least > limit).then_some(Solver::Cholesky(factor))
}

fn eigen(scaled: &Mat<f64>) -> Solver {
    let count = scaled.nrows();
    let Ok(found) = scaled.self_adjoint_eigen(Side::Lower) else {
        // No convergence: the diagonal alone, which is 1, still descends.
        return Solver::Eigen {
            vectors: Mat::identity(count, count),
            inverse: vec![1.0; count],
        };
    };
    let values: Vec<f64> = (0..count).map(|a| found.S()[a]).collect();
    let top = values.iter().copied().fold(0.0, f64::max);
    let limit = f64::EPSILON * count as f64 * top;
    let inverse = |value: &f64| if *value > limit { value.recip() } else { 0.0 };
    Solver::Eigen {
        inverse: values.iter().map(inverse).collect(),
        vectors: found.U().to_owned(),
    }
}
