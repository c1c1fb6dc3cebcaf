//! Losses with kinks by a primal-dual interior-point method, exact to the tolerance whatever the columns.
//!
//! `min over θ of Σₚ max(aₚ·(tₚ − xₚ·θ), lₚ ≤ aₚ ≤ hₚ) + ½·θᵀΛθ`: rows are pieces ([`Piece`]), and so is an l1 term, of the
//! unit vectors. With multipliers p, q of both bounds of a and their distances s = h − a, r = a − l, an optimum has
//!
//! ```text
//! Λθ = Xᵀa,  t − Xθ = p − q,  p·s = μ,  q·r = μ,  μ → 0
//! ```
//!
//! Each iteration solves `(Λ + Xᵀ·D·X)·Δθ = …` with D = 1/(p/s + q/r) twice over one factor: 15 to 40 of them, however many
//! rows. It ends when the objective is within the tolerance of the dual's, which bounds it from below.
//!
//! Sources: R. Portnoy, R. Koenker, "The Gaussian hare and the Laplacian tortoise", Stat. Sci. 12, 1997 (quantiles);
//! M. Ferris, T. Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim. 13, 2002 (hinges);
//! S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992 (both steps).

use std::time::Instant;

use super::outcome::{Solved, Start, Watch};
use super::problem::Problem;
use super::step::Step;
use crate::learning::cg::Convergence;
use crate::learning::solver::{Iteration, Limits};
use crate::learning::spec::{Kinked, Piece, SampleLoss};

/// Share of the way to a bound that a step goes.
const BACK_OFF: f64 = 0.9995;
/// Share of the tolerance at which the gap is small enough: coefficients are then about as near as the objective.
const SHARE: f64 = 1e-2;
/// A gap that is requested is no smaller, relative to the objective.
const NO_CLOSER: f64 = 1e-13;
/// Iterations without a smaller gap, after which rounding is all that is left.
const IDLE: usize = 8;

/// What a piece is multiplied with.
#[derive(Clone, Copy)]
enum Of {
    Row(usize),
    Coordinate(usize),
}

/// Pieces with their variables, element p of each.
struct Pieces {
    of: Vec<Of>,
    piece: Vec<Piece>,
    a: Vec<f64>,
    p: Vec<f64>,
    q: Vec<f64>,
}

/// A direction of all variables.
struct Move {
    theta: Vec<f64>,
    a: Vec<f64>,
    p: Vec<f64>,
    q: Vec<f64>,
}

/// Minimises a loss with kinks from where it begins.
pub(super) fn minimise(
    problem: &Problem<'_>,
    start: Start,
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Solved {
    let SampleLoss::Kinked(loss) = problem.spec.loss else {
        unreachable!("chosen for losses with kinks")
    };
    let begun = Instant::now();
    let mut interior = Interior::new(problem, loss, start.theta);
    let wanted = (SHARE * limits.tolerance).max(NO_CLOSER);
    let mut best = Best::new(&interior);
    let (mut n_iter, mut idle) = (0, 0);
    let convergence = loop {
        if !best.value.is_finite() {
            break Convergence::NotFinite;
        }
        if best.relative() <= wanted {
            break Convergence::Converged;
        }
        if idle > IDLE {
            // As far as rounding allows: honest where that is what was requested.
            let enough = best.relative() <= limits.tolerance;
            break if enough {
                Convergence::PrecisionLimit
            } else {
                Convergence::Stalled
            };
        }
        if n_iter >= limits.max_iter {
            break Convergence::IterationLimit;
        }
        interior.advance();
        n_iter += 1;
        idle = if best.improve(&interior) { 0 } else { idle + 1 };
        let iteration = Iteration {
            objective: best.value,
            gradient_ratio: best.relative(),
            inner: 1,
            seconds: begun.elapsed().as_secs_f64(),
            validation: None,
        };
        if watch(iteration, &|| best.theta.clone()).is_break() {
            break Convergence::IterationLimit;
        }
    };
    best.clear(&mut interior);
    Solved {
        objective: best.value,
        gradient_ratio: best.relative(),
        gap: Some(best.gap()),
        n_iter,
        convergence,
        theta: best.theta,
        instead: None,
    }
}

/// The point of the least objective, and the last lower bound.
struct Best {
    theta: Vec<f64>,
    value: f64,
    bound: f64,
    /// Objectives below this are 0 but for rounding.
    nothing: f64,
}

/// Share of the first objective below which a fit is perfect.
const PERFECT: f64 = 1e-9;

/// Share of the largest coefficient below which one is next to nothing.
const CLEARED: f64 = 1e-8;

impl Best {
    fn new(interior: &Interior<'_, '_>) -> Best {
        let value = interior.value();
        Best {
            theta: interior.theta.clone(),
            value,
            bound: interior.bound(),
            nothing: (PERFECT * value.abs()).max(f64::MIN_POSITIVE),
        }
    }

    /// Whether the gap has become smaller.
    fn improve(&mut self, interior: &Interior<'_, '_>) -> bool {
        let (value, bound) = (interior.value(), interior.bound());
        let before = self.gap();
        if value < self.value {
            (self.value, self.theta) = (value, interior.theta.clone());
        }
        self.bound = bound;
        self.gap() < 0.9 * before
    }

    /// Sets coefficients to 0 that an l1 penalty holds there: those next to nothing, where the objective is then as near to
    /// the bound as it was, but for as much again. An interior point never reaches 0 itself.
    fn clear(&mut self, interior: &mut Interior<'_, '_>) {
        let penalised = interior.problem.columns() * interior.problem.predictors();
        let coefficients = &self.theta[..penalised];
        let largest = coefficients.iter().fold(0.0_f64, |a, w| a.max(w.abs()));
        if interior.problem.spec.l1 == 0.0 || !self.value.is_finite() {
            return;
        }
        interior.theta.clone_from(&self.theta);
        for w in &mut interior.theta[..penalised] {
            if w.abs() <= CLEARED * largest {
                *w = 0.0;
            }
        }
        let value = interior.value();
        if value <= self.value + self.gap() {
            self.theta.clone_from(&interior.theta);
            self.value = value;
        }
    }

    fn gap(&self) -> f64 {
        (self.value - self.bound).max(0.0)
    }

    /// Relative to the objective; of a perfect fit to nothing that is smaller than rounding.
    fn relative(&self) -> f64 {
        let gap = self.gap();
        gap / self.value.abs().max(self.nothing)
    }
}

struct Interior<'a, 'p> {
    problem: &'a Problem<'p>,
    free: Vec<usize>,
    theta: Vec<f64>,
    /// The last direction of θ.
    step: Vec<f64>,
    pieces: Pieces,
}

impl<'a, 'p> Interior<'a, 'p> {
    /// Halfway between the bounds of a; p and q are the residuals of `theta` and a little more.
    fn new(problem: &'a Problem<'p>, loss: Kinked, theta: Vec<f64>) -> Self {
        let mut all = Pieces::of(problem, loss);
        let residuals = residuals(problem, &all, &theta);
        let mean = residuals.iter().map(|r| r.abs()).sum::<f64>() / residuals.len().max(1) as f64;
        let more = if mean > 0.0 { mean } else { 1.0 };
        all.p = residuals.iter().map(|r| r.max(0.0) + more).collect();
        all.q = residuals.iter().map(|r| (-r).max(0.0) + more).collect();
        Interior {
            free: problem.free(),
            pieces: all,
            problem,
            step: vec![f64::INFINITY; theta.len()],
            theta,
        }
    }

    fn value(&self) -> f64 {
        let predictors = self.problem.linear_predictors(&self.theta);
        self.problem.losses().value(&predictors) + self.problem.penalty(&self.theta)
    }

    /// The least value of `Σ a·(t − Xθ) + ½θᵀΛθ` over θ: with a gradient R = Λθ − Xᵀa of it less than the value at θ by
    /// R²/(2λ) in coordinates with a ridge. Those without one have R = 0 but for rounding once a step was whole; until then
    /// the minimum is taken to be no further than twice the coordinate and the last direction.
    fn bound(&self) -> f64 {
        let (pieces, problem) = (&self.pieces, self.problem);
        let targets = pieces.piece.iter().zip(&pieces.a).zip(&pieces.of);
        let linear: f64 = targets
            .map(|((piece, a), of)| a * (piece.target - self.offset(*of)))
            .sum();
        let each = self.dual_residual().into_iter().enumerate();
        let rest: f64 = each
            .filter(|(_, slope)| *slope != 0.0)
            .map(|(i, slope)| match problem.l2(i) {
                l2 if l2 > 0.0 => slope * slope / (2.0 * l2) - slope * self.theta[i],
                _ => slope.abs() * (3.0 * self.theta[i].abs() + 2.0 * self.step[i].abs()),
            })
            .sum();
        let each = self.theta.iter().enumerate();
        let ridge: f64 = each.map(|(i, x)| problem.l2(i) * x * x).sum();
        linear - 0.5 * ridge - rest
    }

    fn offset(&self, of: Of) -> f64 {
        match (of, self.problem.offset) {
            (Of::Row(i), Some(offset)) => offset[i],
            _ => 0.0,
        }
    }

    /// Λθ − Xᵀa, 0 for coordinates that are held.
    fn dual_residual(&self) -> Vec<f64> {
        let mut out = self.transposed(&self.pieces.a);
        for (i, out) in out.iter_mut().enumerate() {
            *out = self.problem.l2(i) * self.theta[i] - *out;
            if self.problem.held[i] {
                *out = 0.0;
            }
        }
        out
    }

    /// Xᵀ·c over all pieces.
    fn transposed(&self, c: &[f64]) -> Vec<f64> {
        let mut of_rows = vec![0.0; self.problem.design.rows()];
        let mut units = vec![0.0; self.problem.len()];
        for (of, c) in self.pieces.of.iter().zip(c) {
            match of {
                Of::Row(i) => of_rows[*i] += c,
                Of::Coordinate(j) => units[*j] += c,
            }
        }
        let mut out = self.problem.design.transposed(&of_rows, 1);
        out.iter_mut()
            .zip(units)
            .for_each(|(out, unit)| *out += unit);
        out
    }

    /// One iteration: the affine step, then the step that keeps to the middle.
    fn advance(&mut self) {
        let pieces = &self.pieces;
        let d: Vec<f64> = (0..pieces.len())
            .map(|n| 1.0 / pieces.stiffness(n))
            .collect();
        let factor = self.factor(&d);
        let (residual, dual) = (self.primal_residual(), self.dual_residual());
        let zero = vec![0.0; pieces.len()];
        let affine = self.direction(&factor, &d, (&residual, &dual), (0.0, &zero, &zero));
        let (mu, reach) = (pieces.mean_product(None), pieces.reach(&affine, 1.0));
        let after = pieces.mean_product(Some((&affine, reach)));
        let centred = (after / mu).powi(3) * mu;
        let second = |change: &[f64]| -> Vec<f64> {
            change.iter().zip(&affine.a).map(|(c, a)| c * a).collect()
        };
        let (of_p, of_q) = (second(&affine.p), second(&affine.q));
        let step = self.direction(&factor, &d, (&residual, &dual), (centred, &of_p, &of_q));
        let reach = self.pieces.reach(&step, BACK_OFF);
        self.walk(step, reach);
    }

    /// t − Xθ − p + q.
    fn primal_residual(&self) -> Vec<f64> {
        let pieces = &self.pieces;
        let residuals = residuals(self.problem, pieces, &self.theta).into_iter();
        let both = pieces.p.iter().zip(&pieces.q);
        residuals.zip(both).map(|(r, (p, q))| r - p + q).collect()
    }

    /// Of Λ + Xᵀ·D·X.
    fn factor(&self, d: &[f64]) -> Step {
        let mut of_rows = vec![0.0; self.problem.design.rows()];
        let mut units = vec![0.0; self.problem.len()];
        for (of, d) in self.pieces.of.iter().zip(d) {
            match of {
                Of::Row(i) => of_rows[*i] += d,
                Of::Coordinate(j) => units[*j] += d,
            }
        }
        let mut h = self
            .problem
            .design
            .grams(1, |_, i| of_rows[i])
            .swap_remove(0);
        for (j, unit) in units.iter().enumerate() {
            h[(j, j)] += self.problem.l2(j) + unit;
        }
        Step::new(&h, &self.free)
    }

    /// Newton's direction to products of `mu`, with second-order terms of p and q.
    fn direction(
        &self,
        factor: &Step,
        d: &[f64],
        (residual, dual): (&[f64], &[f64]),
        (mu, of_p, of_q): (f64, &[f64], &[f64]),
    ) -> Move {
        let pieces = &self.pieces;
        let (mut by_p, mut by_q) = (vec![0.0; d.len()], vec![0.0; d.len()]);
        let mut rho = vec![0.0; d.len()];
        for n in 0..d.len() {
            let (s, r) = pieces.distances(n);
            by_p[n] = (mu - pieces.p[n] * s + of_p[n]) / s;
            by_q[n] = (mu - pieces.q[n] * r - of_q[n]) / r;
            rho[n] = residual[n] - by_p[n] + by_q[n];
        }
        let scaled: Vec<f64> = rho.iter().zip(d).map(|(rho, d)| rho * d).collect();
        let right = self.transposed(&scaled);
        let gradient: Vec<f64> = right.iter().zip(dual).map(|(x, dual)| dual - x).collect();
        let theta = factor.direction(&gradient);
        let along = products(self.problem, pieces, &theta);
        let a: Vec<f64> = (0..d.len()).map(|n| d[n] * (rho[n] - along[n])).collect();
        let mut moved = Move {
            theta,
            p: by_p,
            q: by_q,
            a,
        };
        for n in 0..d.len() {
            let (s, r) = pieces.distances(n);
            moved.p[n] += pieces.p[n] / s * moved.a[n];
            moved.q[n] -= pieces.q[n] / r * moved.a[n];
        }
        moved
    }

    fn walk(&mut self, step: Move, reach: f64) {
        let add = |to: &mut [f64], by: &[f64]| {
            to.iter_mut().zip(by).for_each(|(to, by)| *to += reach * by);
        };
        add(&mut self.theta, &step.theta);
        add(&mut self.pieces.a, &step.a);
        add(&mut self.pieces.p, &step.p);
        add(&mut self.pieces.q, &step.q);
        self.step = step.theta;
    }
}

impl Pieces {
    fn of(problem: &Problem<'_>, loss: Kinked) -> Pieces {
        let (mut of, mut piece) = (Vec::new(), Vec::new());
        for (i, (b, v)) in problem.targets.iter().zip(problem.weights).enumerate() {
            for part in loss.pieces(*b, *v).filter(|part| part.high > part.low) {
                of.push(Of::Row(i));
                piece.push(part);
            }
        }
        for j in (0..problem.len()).filter(|j| !problem.held[*j]) {
            let kink = problem.kink(j);
            if kink.l1 > 0.0 {
                of.push(Of::Coordinate(j));
                piece.push(Piece {
                    target: 0.0,
                    low: -kink.l1,
                    high: kink.l1,
                });
            }
        }
        let middle = |piece: &Piece| 0.5 * (piece.low + piece.high);
        Pieces {
            a: piece.iter().map(middle).collect(),
            p: Vec::new(),
            q: Vec::new(),
            of,
            piece,
        }
    }

    fn len(&self) -> usize {
        self.of.len()
    }

    /// From a to its bounds; never less than rounding.
    fn distances(&self, n: usize) -> (f64, f64) {
        let Piece { low, high, .. } = self.piece[n];
        let least = f64::EPSILON * (high - low);
        ((high - self.a[n]).max(least), (self.a[n] - low).max(least))
    }

    /// p/s + q/r.
    fn stiffness(&self, n: usize) -> f64 {
        let (s, r) = self.distances(n);
        (self.p[n] / s + self.q[n] / r).max(f64::MIN_POSITIVE)
    }

    /// The mean of p·s and q·r, after a step if one is given.
    fn mean_product(&self, after: Option<(&Move, f64)>) -> f64 {
        let sum: f64 = (0..self.len())
            .map(|n| {
                let (s, r) = self.distances(n);
                let (p, q) = (self.p[n], self.q[n]);
                match after {
                    None => p * s + q * r,
                    Some((step, t)) => {
                        let (s, r) = (s - t * step.a[n], r + t * step.a[n]);
                        (p + t * step.p[n]) * s + (q + t * step.q[n]) * r
                    }
                }
            })
            .sum();
        sum / (2 * self.len().max(1)) as f64
    }

    /// The longest step, 1 at most, that leaves `share` of the way to every bound.
    fn reach(&self, step: &Move, share: f64) -> f64 {
        let mut reach = 1.0_f64;
        let mut hold = |from: f64, by: f64| {
            if by < 0.0 {
                reach = reach.min(share * from / -by);
            }
        };
        for n in 0..self.len() {
            let (s, r) = self.distances(n);
            hold(s, -step.a[n]);
            hold(r, step.a[n]);
            hold(self.p[n], step.p[n]);
            hold(self.q[n], step.q[n]);
        }
        reach
    }
}

/// t − Xθ of all pieces.
fn residuals(problem: &Problem<'_>, pieces: &Pieces, theta: &[f64]) -> Vec<f64> {
    let predictors = problem.linear_predictors(theta);
    let each = pieces.of.iter().zip(&pieces.piece);
    each.map(|(of, piece)| match of {
        Of::Row(i) => piece.target - predictors[*i],
        Of::Coordinate(j) => -theta[*j],
    })
    .collect()
}

/// X·d of all pieces.
fn products(problem: &Problem<'_>, pieces: &Pieces, d: &[f64]) -> Vec<f64> {
    let of_rows = problem.design.predictors(d, 1);
    let each = pieces.of.iter();
    each.map(|of| match of {
        Of::Row(i) => of_rows[*i],
        Of::Coordinate(j) => d[*j],
    })
    .collect()
}
