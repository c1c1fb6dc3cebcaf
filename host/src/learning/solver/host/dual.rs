//! Ridge regressions of sparse rows with more columns than rows: conjugate gradients over the rows.
//!
//! With A = √V·X̃ and r = √V·(b − b̄) the best coefficients are w = Aᵀa, a the solution of (A·Aᵀ + λ·I)·a = r. Vectors have m
//! elements instead of n. X̃ is centred by the weighted means of its columns, so that the intercept is b̄ alone; columns
//! without an entry have no part in anything and are left out.
//!
//! The entries are kept by rows and by columns, so that either product reads them in order and writes each element once.
//!
//! Source: C. Saunders, A. Gammerman, V. Vovk, "Ridge regression learning algorithm in dual variables", ICML 1998;
//! conjugate gradients with a diagonal preconditioner: Golub & Van Loan, "Matrix Computations", section 11.5.

use std::time::Instant;

use super::outcome::{Solved, Watch};
use super::problem::Problem;
use super::streamed::Entries;
use crate::learning::cg::Convergence;
use crate::learning::solver::{Iteration, Limits, ratio};
use crate::parallel;

/// Elements of a product that one task computes.
const BLOCK: usize = 1 << 12;
/// How much smaller than the gradient the residual is made before the gradient itself is looked at again.
const CLOSER: f64 = 0.3;

/// Entries of a sparse matrix, row after row.
struct Lines {
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
}

impl Lines {
    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn entries(&self, line: usize) -> impl Iterator<Item = (usize, f64)> {
        let own = self.offsets[line]..self.offsets[line + 1];
        let indices = self.indices[own.clone()].iter();
        indices
            .zip(&self.values[own])
            .map(|(index, value)| (*index as usize, *value))
    }

    /// The product of each line with `by`, what `finish` makes of its number and that.
    fn times(&self, by: &[f64], finish: impl Fn(usize, f64) -> f64 + Sync) -> Vec<f64> {
        let mut out = vec![0.0; self.len()];
        parallel::for_each_item(out.chunks_mut(BLOCK), |number, out| {
            for (i, out) in out.iter_mut().enumerate() {
                let line = number * BLOCK + i;
                let sum = self.entries(line).map(|(at, value)| value * by[at]).sum();
                *out = finish(line, sum);
            }
        });
        out
    }

    /// The same entries by columns, of which there are `count`.
    fn turned(&self, count: usize) -> Lines {
        let mut offsets = vec![0; count + 1];
        for index in &self.indices {
            offsets[*index as usize + 1] += 1;
        }
        (0..count).for_each(|j| offsets[j + 1] += offsets[j]);
        let mut next = offsets.clone();
        let (mut indices, mut values) = (vec![0; self.indices.len()], vec![0.0; self.values.len()]);
        for line in 0..self.len() {
            for (j, value) in self.entries(line) {
                (indices[next[j]], values[next[j]]) = (line as u32, value);
                next[j] += 1;
            }
        }
        Lines {
            offsets,
            indices,
            values,
        }
    }
}

/// A = √V·X̃ without the columns that have no part.
struct Scaled {
    rows: Lines,
    columns: Lines,
    /// The column of X of each that is left.
    names: Vec<u32>,
    /// √v.
    roots: Vec<f64>,
    /// Σ v·x·s of each column that is left, where columns are centred.
    centres: Option<Vec<f64>>,
}

impl Scaled {
    fn new(problem: &Problem<'_>, entries: &dyn Entries) -> Scaled {
        let (m, n) = (problem.design.rows(), problem.columns());
        let roots: Vec<f64> = problem.weights.iter().map(|v| v.sqrt()).collect();
        let mut places = vec![u32::MAX; n];
        let mut rows = Lines {
            offsets: vec![0],
            indices: Vec::new(),
            values: Vec::new(),
        };
        let mut names = Vec::new();
        for (row, root) in roots.iter().enumerate() {
            entries.each(row, &mut |j, value| {
                if *root == 0.0 || value == 0.0 || problem.held[j] {
                    return;
                }
                if places[j] == u32::MAX {
                    places[j] = names.len() as u32;
                    names.push(j as u32);
                }
                rows.indices.push(places[j]);
                rows.values.push(root * value);
            });
            rows.offsets.push(rows.indices.len());
        }
        debug_assert_eq!(rows.len(), m);
        let columns = rows.turned(names.len());
        let centres = problem
            .intercept
            .then(|| columns.times(&roots, |_, sum| sum));
        Scaled {
            rows,
            columns,
            names,
            roots,
            centres,
        }
    }

    /// A·w.
    fn forward(&self, w: &[f64]) -> Vec<f64> {
        let shift = self.centres.as_ref().map_or(0.0, |c| dot(c, w));
        self.rows.times(w, |i, sum| sum - self.roots[i] * shift)
    }

    /// Aᵀ·a.
    fn back(&self, a: &[f64]) -> Vec<f64> {
        let shift = dot(&self.roots, a);
        match &self.centres {
            Some(c) => self.columns.times(a, |j, sum| sum - c[j] * shift),
            None => self.columns.times(a, |_, sum| sum),
        }
    }

    /// r, and b̄.
    fn targets(&self, problem: &Problem<'_>) -> (Vec<f64>, f64) {
        let offset = |i: usize| problem.offset.map_or(0.0, |offset| offset[i]);
        let targets = problem.targets.iter().enumerate();
        let mut right: Vec<f64> = targets.map(|(i, b)| b - offset(i)).collect();
        let mean = match problem.intercept {
            true => dot(&right, problem.weights),
            false => 0.0,
        };
        let pairs = right.iter_mut().zip(&self.roots);
        pairs.for_each(|(b, root)| *b = root * (*b - mean));
        (right, mean)
    }

    /// The coefficients of all columns, and the intercept beside columns that are centred as the problem says.
    fn widened(
        &self,
        (problem, entries): (&Problem<'_>, &dyn Entries),
        (w, mean): (&[f64], f64),
    ) -> Vec<f64> {
        let mut theta = vec![0.0; problem.len()];
        let mut intercept = mean;
        for (place, (name, w)) in self.names.iter().zip(w).enumerate() {
            theta[*name as usize] = *w;
            let centre = self.centres.as_ref().map_or(0.0, |c| c[place]);
            intercept += (entries.centre(*name as usize) - centre) * w;
        }
        if problem.intercept {
            theta[problem.columns()] = intercept;
        }
        theta
    }

    /// The squares of A's rows.
    fn squares(&self) -> Vec<f64> {
        let c = self.centres.as_deref();
        let all = c.map_or(0.0, |c| dot(c, c));
        let of_row = |i: usize| {
            let root = self.roots[i];
            let own = self.rows.entries(i);
            let cross = |j: usize| c.map_or(0.0, |c| c[j]);
            let each = own.map(|(j, value)| value * (value - 2.0 * root * cross(j)));
            each.sum::<f64>() + root * root * all
        };
        (0..self.rows.len()).map(of_row).collect()
    }
}

/// Where conjugate gradients stand.
struct Descent<'a> {
    scaled: &'a Scaled,
    l2: f64,
    right: Vec<f64>,
    a: Vec<f64>,
    /// r − (A·Aᵀ + λ)·a.
    residual: Vec<f64>,
    direction: Vec<f64>,
    inverse: Vec<f64>,
    rz: f64,
}

impl<'a> Descent<'a> {
    fn new(scaled: &'a Scaled, l2: f64, right: Vec<f64>) -> Descent<'a> {
        let inverse: Vec<f64> = scaled.squares().iter().map(|s| (s + l2).recip()).collect();
        let direction: Vec<f64> = right.iter().zip(&inverse).map(|(r, d)| r * d).collect();
        Descent {
            rz: dot(&right, &direction),
            residual: right.clone(),
            a: vec![0.0; right.len()],
            direction,
            inverse,
            scaled,
            l2,
            right,
        }
    }

    fn step(&mut self) {
        let p = &self.direction;
        let mut product = self.scaled.forward(&self.scaled.back(p));
        add(&mut product, self.l2, p);
        let length = self.rz / dot(p, &product);
        add(&mut self.a, length, p);
        add(&mut self.residual, -length, &product);
        let z: Vec<f64> = self
            .residual
            .iter()
            .zip(&self.inverse)
            .map(|(r, d)| r * d)
            .collect();
        let rz = dot(&self.residual, &z);
        let turn = rz / self.rz;
        self.rz = rz;
        let pairs = self.direction.iter_mut().zip(z);
        pairs.for_each(|(p, z)| *p = z + turn * *p);
    }

    /// ½·‖A·w − r‖² + ½·λ·‖w‖² at w = Aᵀa.
    fn value(&self) -> f64 {
        let pairs = || self.residual.iter().zip(&self.a);
        let loss: f64 = pairs().map(|(e, a)| (e + self.l2 * a).powi(2)).sum();
        let bent = self.right.iter().zip(pairs());
        let norm: f64 = bent.map(|(r, (e, a))| a * (r - e - self.l2 * a)).sum();
        0.5 * (loss + self.l2 * norm)
    }
}

/// Whether it can be done: of a square with a ridge, and an intercept without one.
fn suits(problem: &Problem<'_>) -> bool {
    let round = !problem.has_kinks() && problem.factors.is_none();
    let free = !problem.intercept || problem.spec.intercept_l2 == 0.0;
    problem.is_quadratic() && round && free && problem.spec.l2 > 0.0
}

/// Minimises over the rows, whatever the point to start from; `None` where X is not sparse, or the problem is another.
pub(super) fn minimise(
    problem: &Problem<'_>,
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Option<Solved> {
    let entries = problem.design.entries().filter(|_| suits(problem))?;
    let begun = Instant::now();
    let scaled = Scaled::new(problem, entries);
    let (right, mean) = scaled.targets(problem);
    let first = norm(&scaled.back(&right));
    let wanted = limits.tolerance * first;
    let mut descent = Descent::new(&scaled, problem.spec.l2, right);
    let (whole, mut closer) = (norm(&descent.right), limits.tolerance);
    let widen = |a: &[f64]| scaled.widened((problem, entries), (&scaled.back(a), mean));
    let slope = |residual: &[f64]| norm(&scaled.back(residual));
    let (mut n_iter, mut gradient) = (0, first);
    let convergence = loop {
        let left = norm(&descent.residual);
        if !left.is_finite() {
            break Convergence::NotFinite;
        }
        if left <= closer * whole {
            gradient = slope(&descent.residual);
            if gradient <= wanted {
                break Convergence::Converged;
            }
            closer *= CLOSER * (wanted / gradient).min(1.0);
            if closer < f64::EPSILON {
                break Convergence::PrecisionLimit;
            }
        }
        if n_iter >= limits.max_iter {
            gradient = slope(&descent.residual);
            break Convergence::IterationLimit;
        }
        descent.step();
        n_iter += 1;
        let iteration = Iteration {
            objective: descent.value(),
            gradient_ratio: ratio(norm(&descent.residual), whole),
            inner: 1,
            seconds: begun.elapsed().as_secs_f64(),
            validation: None,
        };
        if watch(iteration, &|| widen(&descent.a)).is_break() {
            gradient = slope(&descent.residual);
            break Convergence::IterationLimit;
        }
    };
    Some(Solved {
        theta: widen(&descent.a),
        objective: descent.value(),
        gradient_ratio: ratio(gradient, first),
        gap: None,
        n_iter,
        convergence,
        instead: None,
    })
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// `y += by·x`.
fn add(y: &mut [f64], by: f64, x: &[f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += by * x);
}
