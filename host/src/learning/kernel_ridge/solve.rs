//! Preconditioned conjugate gradients on (K + λI)·a = t with K implicit, refined in f64.
//!
//! Outer loop: r = t − (K + λI)·a in f64; inner: solve (K + λI)·d = r in the working type; a += d. Inner:
//! z = P⁻¹r; p = z; loop q = (K + λI)·p; γ = rᵀz / pᵀq; d += γ·p; r −= γ·q; p = z + (new rᵀz / old)·p.
//! Source: Hestenes & Stiefel 1952; Golub & Van Loan §11.5; refinement, Higham, *Accuracy and Stability*, ch. 12.

use super::preconditioner::Preconditioner;
use crate::device::{Buffer, Device};
use crate::learning::checkpoint::{Record, session};
use crate::learning::{Convergence, Progress};
use crate::matrix::{Dtype, Element};
use crate::ops::{KernelSum, Number, OpError, interrupt, vector};

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal {
    /// ‖r‖ / ‖t‖ in f64.
    pub tolerance: f64,
    /// Inner iterations in all.
    pub max_iter: usize,
    /// λ.
    pub alpha: f64,
}

/// The result of a solve.
pub(super) struct Solved {
    /// a.
    pub dual: Vec<f64>,
    pub iterations: usize,
    pub convergence: Convergence,
    /// ‖t − (K + λI)·a‖ / ‖t‖, computed in f64.
    pub residual_ratio: f64,
}

impl Solved {
    /// Adds it to a record, between two iterations.
    fn save(&self, to: &mut Record) {
        to.numbers("dual", &self.dual);
        to.numbers("solved", &[self.iterations as f64, self.residual_ratio]);
    }

    fn restore(&mut self, from: &Record) -> Result<(), OpError> {
        self.dual = from.list_of("dual")?;
        let [iterations, residual_ratio] = from.array("solved")?;
        (self.iterations, self.residual_ratio) = (iterations as usize, residual_ratio);
        Ok(())
    }
}

/// How far one inner solve may reduce its residual before rounding in T makes it a stranger to the true one.
fn inner_floor(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F32 => 1e-5,
        Dtype::F64 => 1e-13,
    }
}

/// K + λI in the working type and in f64.
pub(super) struct System<'a, T: Number> {
    pub working: &'a KernelSum<T>,
    pub exact: &'a KernelSum<f64>,
    pub preconditioner: Preconditioner<T>,
}

impl<T: Number> System<'_, T> {
    /// Solves from a = 0.
    pub fn solve(
        &mut self,
        targets: &[f64],
        goal: &Goal,
        mut watch: impl FnMut(Progress),
    ) -> Result<Solved, OpError> {
        let norm = norm(targets);
        let mut solved = Solved {
            dual: vec![0.0; targets.len()],
            iterations: 0,
            convergence: Convergence::Converged,
            residual_ratio: if norm == 0.0 { 0.0 } else { 1.0 },
        };
        let mut residual = targets.to_vec();
        let mut found = session::begin("kernel ridge")?;
        if let Some(found) = &found {
            solved.restore(found)?;
            residual = found.list_of("residual")?;
        }
        while solved.residual_ratio > goal.tolerance {
            if solved.iterations >= goal.max_iter {
                solved.convergence = Convergence::IterationLimit;
                break;
            }
            let before = solved.residual_ratio;
            let wanted = goal.tolerance / before;
            let from = (&*residual, found.take());
            let inner = self.correct(from, wanted, goal, &mut solved, &mut watch)?;
            residual = self::residual(self.exact, targets, &solved.dual, goal.alpha)?;
            solved.residual_ratio = self::norm(&residual) / norm;
            if let Some(ending) = ending(inner, before, solved.residual_ratio) {
                solved.convergence = ending;
                break;
            }
        }
        if solved.residual_ratio <= goal.tolerance {
            solved.convergence = Convergence::Converged;
        }
        Ok(solved)
    }

    /// One inner solve, down to `wanted` times the norm of `residual`, from where it was recorded; its solution is added to
    /// the dual.
    fn correct(
        &mut self,
        (residual, found): (&[f64], Option<Record>),
        wanted: f64,
        goal: &Goal,
        solved: &mut Solved,
        watch: &mut impl FnMut(Progress),
    ) -> Result<Convergence, OpError> {
        let device = self.working.device();
        // Scaled to one, so that nothing underflows in f32.
        let unit = norm(residual);
        let scaled: Vec<T> = residual
            .iter()
            .map(|r| <T as Element>::from_f64(r / unit))
            .collect();
        let mut cg = Cg::new(device, &scaled, &mut self.preconditioner)?;
        if let Some(found) = found {
            cg.restore(&found)?;
        }
        let stop = (wanted / 2.0).max(inner_floor(T::DTYPE));
        let mut convergence = Convergence::IterationLimit;
        while solved.iterations < goal.max_iter {
            if session::is_due() {
                session::save(|record| {
                    solved.save(record);
                    record.numbers("residual", residual);
                    cg.save(record)
                })?;
            }
            interrupt::proceed()?;
            let step = cg.step(self.working, goal.alpha, &mut self.preconditioner)?;
            solved.iterations += 1;
            watch(Progress {
                iteration: solved.iterations,
                max_iter: goal.max_iter,
                residual_ratio: step.residual * solved.residual_ratio,
            });
            if let Some(ending) = step.ending(stop) {
                convergence = ending;
                break;
            }
        }
        for (dual, d) in solved.dual.iter_mut().zip(cg.d.to_vec()?) {
            *dual += unit * Element::to_f64(d);
        }
        Ok(convergence)
    }
}

/// t − (K + λI)·a in f64.
pub(super) fn residual(
    exact: &KernelSum<f64>,
    targets: &[f64],
    dual: &[f64],
    alpha: f64,
) -> Result<Vec<f64>, OpError> {
    let device = exact.device();
    let a = device.upload(dual)?;
    let mut product = device.zeros(dual.len())?;
    exact.sum_and_add(&a, (alpha, &a), &mut product)?;
    let product = product.to_vec()?;
    Ok(targets.iter().zip(product).map(|(t, p)| t - p).collect())
}

/// Whether refinement goes on: not when the inner solve broke down, nor when it did not help.
fn ending(inner: Convergence, before: f64, after: f64) -> Option<Convergence> {
    if !after.is_finite() {
        return Some(Convergence::NotFinite);
    }
    match inner {
        Convergence::Singular | Convergence::NotFinite => Some(inner),
        _ if after > before / 2.0 => Some(Convergence::IterationLimit),
        _ => None,
    }
}

pub(super) fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// Vectors of an inner solve.
struct Cg<T: Number> {
    /// The solution.
    d: Buffer<T>,
    r: Buffer<T>,
    z: Buffer<T>,
    p: Buffer<T>,
    q: Buffer<T>,
    rz: f64,
}

/// What an iteration came to.
struct Step {
    /// ‖r‖, of a right-hand side of norm one.
    residual: f64,
    curvature: f64,
}

impl Step {
    fn ending(&self, stop: f64) -> Option<Convergence> {
        if !self.residual.is_finite() || !self.curvature.is_finite() {
            Some(Convergence::NotFinite)
        } else if self.residual <= stop {
            Some(Convergence::Converged)
        } else if self.curvature <= 0.0 {
            Some(Convergence::Singular)
        } else {
            None
        }
    }
}

impl<T: Number> Cg<T> {
    fn new(
        device: &Device,
        residual: &[T],
        preconditioner: &mut Preconditioner<T>,
    ) -> Result<Self, OpError> {
        let n = residual.len();
        let r = device.upload(residual)?;
        let mut z = device.zeros(n)?;
        preconditioner.apply(&r, &mut z)?;
        Ok(Cg {
            d: device.zeros(n)?,
            p: z.try_clone()?,
            q: device.zeros(n)?,
            rz: vector::dot(&r, &z)?,
            r,
            z,
        })
    }

    fn save(&self, to: &mut Record) -> Result<(), OpError> {
        to.vector("cg.d", &self.d)?;
        to.vector("cg.r", &self.r)?;
        to.vector("cg.p", &self.p)?;
        to.numbers("cg.rz", &[self.rz]);
        Ok(())
    }

    fn restore(&mut self, from: &Record) -> Result<(), OpError> {
        from.restore("cg.d", &mut self.d)?;
        from.restore("cg.r", &mut self.r)?;
        from.restore("cg.p", &mut self.p)?;
        [self.rz] = from.array("cg.rz")?;
        Ok(())
    }

    fn step(
        &mut self,
        k: &KernelSum<T>,
        alpha: f64,
        preconditioner: &mut Preconditioner<T>,
    ) -> Result<Step, OpError> {
        let number = <T as Element>::from_f64;
        let one = number(1.0);
        k.sum_and_add(&self.p, (number(alpha), &self.p), &mut self.q)?;
        let curvature = vector::dot(&self.p, &self.q)?;
        if curvature > 0.0 {
            let along = self.rz / curvature;
            vector::axpby(number(along), &self.p, one, &mut self.d)?;
            vector::axpby(number(-along), &self.q, one, &mut self.r)?;
        }
        let residual = vector::dot(&self.r, &self.r)?.sqrt();
        preconditioner.apply(&self.r, &mut self.z)?;
        let rz = vector::dot(&self.r, &self.z)?;
        vector::axpby(one, &self.z, number(rz / self.rz), &mut self.p)?;
        self.rz = rz;
        Ok(Step {
            residual,
            curvature,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use ndarray::Array2;

    use super::*;
    use crate::learning::{Checkpoint, FitError, KernelRidge, KernelSolver};
    use crate::ops::interruptible;

    /// In f32, so that there are several rounds of refinement.
    #[test]
    fn solves_that_were_interrupted_have_the_bits_of_others() {
        let x = Array2::from_shape_fn((60, 3), |(i, j)| ((i * (3 + 4 * j) + j) % 23) as f32 / 23.0);
        let targets: Vec<f32> = (0..60).map(|i| (i as f32 * 0.7).sin()).collect();
        let params = KernelRidge::params()
            .solver(KernelSolver::ConjugateGradient)
            .alpha(0.01)
            .tolerance(1e-9)
            .rank(3);
        let device = Device::cpu();
        let expected = params.fit(&device, x.view(), &targets).expect("fits");
        let folder = tempfile::tempdir().expect("a folder");
        let checkpoint = Checkpoint::new(folder.path().join("checkpoint")).every(Duration::ZERO);
        for part in 0..1_000 {
            let questions = Cell::new(0);
            let is_over = move || {
                questions.set(questions.get() + 1);
                questions.get() > 1 + part
            };
            let found = interruptible(is_over, || {
                params.fit_with_checkpoint(&device, x.view(), &targets, &checkpoint, |_| {})
            });
            match found {
                Err(FitError::Op(OpError::Interrupted)) => continue,
                Err(error) => panic!("{error}"),
                Ok(found) => assert_eq!(found.dual_coef(), expected.dual_coef()),
            }
            assert!(part > 3, "ended {part} times");
            return;
        }
        panic!("it gets nowhere");
    }
}
