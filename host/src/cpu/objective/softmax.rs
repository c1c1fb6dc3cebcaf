//! Softmax objectives: k linear predictors per row, X read once.
//!
//! As for one predictor, rows are cut into chunks by the shape of X alone, each adds into its own copy of the gradient
//! in f64, and copies and sums are added in the order of the chunks.

use gpu_kernels::math::{exp, ln};

use super::super::fused::{Workspace, combine};
use super::super::scalar::Scalar;
use super::super::terms::Terms;
use super::{BlockedRows, Element, pieces, split_rows};
use crate::parallel;

/// Bytes of all copies of the gradient at most, if two would be more.
const COPIES_BYTES: usize = 1 << 30;

/// What rows are judged by. Absent weights stand for ones, absent constants for zeros.
#[derive(Debug, Clone, Copy)]
pub struct Softmax<'a, T> {
    /// k.
    pub classes: usize,
    /// v, m elements; a row of weight 0 takes no part.
    pub weights: Option<&'a [T]>,
    /// c, k elements, added to each row of X·Y.
    pub constants: Option<&'a [T]>,
    /// What is computed of the rows.
    pub work: SoftmaxWork<'a, T>,
}

/// A chunk's copy of the gradient, its rows of the probabilities.
type Task<'a, T> = (Option<&'a mut [f64]>, Option<&'a mut [T]>);

/// What is computed of the rows.
#[derive(Debug, Clone, Copy)]
pub enum SoftmaxWork<'a, T> {
    /// Losses and slopes, given the numbers of the rows' classes.
    Evaluation(&'a [T]),
    /// Slopes of the curvature, given the probabilities (m × k) of the point.
    Curvature(&'a [T]),
}

/// Evaluates a softmax objective at `y` (n × k, row-major): writes Xᵀ·S, the probabilities where wanted, and returns the
/// loss and the sums of the columns of S.
///
/// # Panics
/// When the length of a vector does not fit X.
///
/// ```
/// use warpfuse::cpu::objective::{Softmax, SoftmaxWork, softmax};
/// use warpfuse::cpu::{Dense, Workspace};
/// let x = Dense::new(1, 1, 1, &[2.0]).unwrap();
/// let rows = Softmax { classes: 2, weights: None, constants: None, work: SoftmaxWork::Evaluation(&[1.0]) };
/// let mut gradient = [0.0; 2];
/// let sums = softmax(&x, &[0.0, 0.0], &rows, (&mut gradient, None), &mut Workspace::new());
/// assert_eq!(gradient, [1.0, -1.0]);
/// assert!((sums[0] - 2f64.ln()).abs() < 1e-15 && sums[1..] == [0.5, -0.5]);
/// ```
pub fn softmax<T: Element>(
    x: &impl BlockedRows<T>,
    y: &[T],
    rows: &Softmax<'_, T>,
    (gradient, probabilities): (&mut [T], Option<&mut [T]>),
    workspace: &mut Workspace,
) -> Vec<f64> {
    let (m, n) = x.shape();
    let k = rows.classes;
    rows.check(m);
    assert_eq!(y.len(), n * k, "y needs n · k elements");
    assert_eq!(gradient.len(), n * k, "the gradient needs n · k elements");
    let stride = n * k + 8;
    let most = (COPIES_BYTES / (8 * stride)).max(1);
    let chunks = x.copies().min(most);
    let copies = workspace.copies(chunks, stride);
    let starts = |chunk| x.first_row(chunk, chunks);
    let probabilities = split_rows(probabilities, k, chunks, starts);
    let tasks: Vec<_> = pieces(copies, stride, chunks, n * k)
        .into_iter()
        .zip(probabilities)
        .collect();
    let run = |chunk, (copy, probabilities): Task<'_, T>| {
        let copy = copy.expect("every chunk has a copy");
        let chunk = starts(chunk)..starts(chunk + 1);
        rows.run(x, y, chunk, copy, probabilities)
    };
    let sums = parallel::map_items(tasks, run);
    combine(copies, stride, &Terms::scaled(<T as Scalar>::ONE), gradient);
    sums.into_iter().fold(vec![0.0; 1 + k], |mut all, sums| {
        all.iter_mut().zip(sums).for_each(|(a, b)| *a += b);
        all
    })
}

impl<T: Element> Softmax<'_, T> {
    fn check(&self, rows: usize) {
        let fits = |vector: Option<&[T]>, len| vector.is_none_or(|vector| vector.len() == len);
        assert!(fits(self.weights, rows), "v needs one element per row of X");
        assert!(fits(self.constants, self.classes), "c needs k elements");
        match self.work {
            SoftmaxWork::Evaluation(target) => {
                assert_eq!(target.len(), rows, "b needs one element per row of X");
            }
            SoftmaxWork::Curvature(given) => {
                let len = rows * self.classes;
                assert_eq!(given.len(), len, "the probabilities need m · k elements");
            }
        }
    }

    fn run(
        &self,
        x: &impl BlockedRows<T>,
        y: &[T],
        rows: std::ops::Range<usize>,
        copy: &mut [f64],
        mut probabilities: Option<&mut [T]>,
    ) -> Vec<f64> {
        let k = self.classes;
        copy.fill(0.0);
        let mut sums = vec![0.0; 1 + k];
        let (mut t, mut slopes) = (vec![0.0; k], vec![0.0; k]);
        for row in rows.clone() {
            let weight = self.weights.map_or(1.0, |weights| weights[row].into());
            for (c, t) in t.iter_mut().enumerate() {
                *t = self.constants.map_or(0.0, |constants| constants[c].into());
            }
            x.dot_columns(row, y, &mut t);
            let loss = match self.work {
                SoftmaxWork::Evaluation(target) => {
                    let class = target[row].into() as usize;
                    let loss = evaluate(&t, class, &mut slopes);
                    if let Some(probabilities) = &mut probabilities {
                        let start = (row - rows.start) * k;
                        store(&slopes, &mut probabilities[start..start + k]);
                    }
                    slopes[class] -= 1.0;
                    loss
                }
                SoftmaxWork::Curvature(given) => {
                    bend(&t, &given[row * k..(row + 1) * k], &mut slopes)
                }
            };
            if weight == 0.0 {
                continue;
            }
            sums[0] += weight * loss;
            for (sum, slope) in sums[1..].iter_mut().zip(&mut slopes) {
                *slope *= weight;
                *sum += *slope;
            }
            x.add_columns(row, &slopes, copy);
        }
        sums
    }
}

fn store<T: Scalar>(from: &[f64], to: &mut [T]) {
    to.iter_mut()
        .zip(from)
        .for_each(|(to, from)| *to = T::narrow(*from));
}

/// ln Σ exp t − t_class, and the probabilities.
fn evaluate(t: &[f64], class: usize, p: &mut [f64]) -> f64 {
    let top = t.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for (p, t) in p.iter_mut().zip(t) {
        *p = exp(t - top);
        sum += *p;
    }
    p.iter_mut().for_each(|p| *p /= sum);
    ln(sum) - (t[class] - top)
}

/// p ⊙ (t − p·t), and half its product with t.
fn bend<T: Scalar>(t: &[f64], p: &[T], slopes: &mut [f64]) -> f64 {
    let mean: f64 = p.iter().zip(t).map(|(p, t)| (*p).into() * t).sum();
    let mut half = 0.0;
    for ((slope, p), t) in slopes.iter_mut().zip(p).zip(t) {
        *slope = (*p).into() * (t - mean);
        half += 0.5 * *slope * t;
    }
    half
}
