//! The objective of the estimators: weighted losses of linear predictors, and a ridge on the coefficients.

use rayon::prelude::*;

use super::design::Design;
use super::solver::Objective;
use crate::device::{Buffer, Device};
use crate::matrix::Element;
use crate::ops::objective::Loss;
use crate::ops::{Number, OpError};

/// Rows whose losses are added by one thread; the blocks are added in order, so that the number of threads does
/// not matter.
const BLOCK: usize = 4096;

/// The loss of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SampleLoss {
    /// Of one linear predictor.
    Single(Loss),
    /// −ln of the softmax of k linear predictors at the row's class.
    Multinomial {
        /// k.
        classes: usize,
    },
}

impl SampleLoss {
    /// Linear predictors of a row.
    pub(super) fn predictors(self) -> usize {
        match self {
            SampleLoss::Single(_) => 1,
            SampleLoss::Multinomial { classes } => classes,
        }
    }
}

/// `f(θ) = Σᵢ vᵢ·loss(x̃ᵢ·θ, bᵢ) + ½·Σⱼ λⱼ·θⱼ²`.
pub(super) struct Empirical<'a, T: Number> {
    pub(super) design: Design<'a, T>,
    pub(super) loss: SampleLoss,
    /// b: targets, or numbers of classes.
    pub(super) targets: &'a [T],
    /// v, which add up to 1.
    pub(super) weights: &'a [T],
    /// λ per coordinate.
    pub(super) l2: Vec<f64>,
    curvature: Curvature<T>,
}

/// What the Hessian needs of a point, per row: vᵢ·loss'' , or the k probabilities.
#[derive(Default)]
struct Curvature<T> {
    accepted: Vec<T>,
    trial: Vec<T>,
}

/// Loss, slopes and curvatures of some rows.
struct Rows<T> {
    loss: f64,
    slopes: Vec<T>,
    curvatures: Vec<T>,
}

impl<'a, T: Number> Empirical<'a, T> {
    pub(super) fn new(
        design: Design<'a, T>,
        loss: SampleLoss,
        (targets, weights): (&'a [T], &'a [T]),
        l2: Vec<f64>,
    ) -> Self {
        Empirical {
            design,
            loss,
            targets,
            weights,
            l2,
            curvature: Curvature {
                accepted: Vec::new(),
                trial: Vec::new(),
            },
        }
    }

    /// X̃·θ by columns: element i of right-hand side c at `c·m + i`.
    pub(super) fn predictors(&self, theta: &[T]) -> Result<Vec<T>, OpError> {
        let mut all = Vec::with_capacity(self.design.rows() * self.loss.predictors());
        for c in 0..self.loss.predictors() {
            all.extend(self.design.forward(theta, c)?);
        }
        Ok(all)
    }

    fn rows(&self, t: &[T]) -> Rows<T> {
        match self.loss {
            SampleLoss::Single(loss) => self.single(loss, t),
            SampleLoss::Multinomial { classes } => self.multinomial(classes, t),
        }
    }

    fn single(&self, loss: Loss, t: &[T]) -> Rows<T> {
        let mut slopes = vec![T::default(); t.len()];
        let mut curvatures = slopes.clone();
        let blocks = slopes
            .par_chunks_mut(BLOCK)
            .zip(curvatures.par_chunks_mut(BLOCK))
            .zip(t.par_chunks(BLOCK))
            .zip(
                self.targets
                    .par_chunks(BLOCK)
                    .zip(self.weights.par_chunks(BLOCK)),
            );
        let losses: Vec<f64> = blocks
            .map(|(((slopes, curvatures), t), (targets, weights))| {
                let mut sum = 0.0;
                for i in 0..t.len() {
                    let point = loss.at(t[i], targets[i]).weighted(weights[i]);
                    slopes[i] = point.slope;
                    curvatures[i] = point.curvature;
                    sum += Element::to_f64(point.loss);
                }
                sum
            })
            .collect();
        Rows {
            loss: losses.into_iter().sum(),
            slopes,
            curvatures,
        }
    }

    fn multinomial(&self, k: usize, t: &[T]) -> Rows<T> {
        let m = self.design.rows();
        let mut probabilities = vec![T::default(); m * k];
        let mut slopes = probabilities.clone();
        let mut sum = 0.0;
        let mut row = vec![0.0; k];
        for i in 0..m {
            (0..k).for_each(|c| row[c] = Element::to_f64(t[c * m + i]));
            let class = Element::to_f64(self.targets[i]) as usize;
            let weight = Element::to_f64(self.weights[i]);
            sum += weight * (softmax(&mut row) - Element::to_f64(t[class * m + i]));
            for c in 0..k {
                let hit = if c == class { 1.0 } else { 0.0 };
                probabilities[c * m + i] = <T as Element>::from_f64(row[c]);
                slopes[c * m + i] = <T as Element>::from_f64(weight * (row[c] - hit));
            }
        }
        Rows {
            loss: sum,
            slopes,
            curvatures: probabilities,
        }
    }

    /// Slopes of the quadratic model along X̃·direction = `s`.
    fn bend(&self, s: &mut [T]) {
        let curvatures = &self.curvature.accepted;
        match self.loss {
            SampleLoss::Single(_) => s.iter_mut().zip(curvatures).for_each(|(s, d)| *s *= *d),
            SampleLoss::Multinomial { classes } => {
                let m = self.design.rows();
                for i in 0..m {
                    let at = |c: usize| c * m + i;
                    let mean: f64 = (0..classes)
                        .map(|c| Element::to_f64(curvatures[at(c)]) * Element::to_f64(s[at(c)]))
                        .sum();
                    let weight = Element::to_f64(self.weights[i]);
                    for c in 0..classes {
                        let p = Element::to_f64(curvatures[at(c)]);
                        let bent = weight * p * (Element::to_f64(s[at(c)]) - mean);
                        s[at(c)] = <T as Element>::from_f64(bent);
                    }
                }
            }
        }
    }

    /// X̃ᵀ·slopes + λ ⊙ θ.
    fn back(&self, slopes: &[T], theta: &[T], out: &mut Buffer<T>) -> Result<(), OpError> {
        let m = self.design.rows();
        let mut product = vec![T::default(); theta.len()];
        for c in 0..self.loss.predictors() {
            self.design
                .transposed(&slopes[c * m..(c + 1) * m], c, &mut product)?;
        }
        for ((out, x), l2) in product.iter_mut().zip(theta).zip(&self.l2) {
            *out = <T as Element>::from_f64(l2.mul_add(Element::to_f64(*x), Element::to_f64(*out)));
        }
        Ok(out.copy_from_slice(&product)?)
    }
}

/// Turns predictors into probabilities; ln Σ eᵗ.
pub(super) fn softmax(row: &mut [f64]) -> f64 {
    let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for t in row.iter_mut() {
        *t = (*t - top).exp();
        sum += *t;
    }
    row.iter_mut().for_each(|t| *t /= sum);
    top + sum.ln()
}

impl<T: Number> Objective<T> for Empirical<'_, T> {
    fn device(&self) -> &Device {
        self.design.device()
    }

    fn len(&self) -> usize {
        self.design.len()
    }

    fn evaluate(&mut self, theta: &Buffer<T>, gradient: &mut Buffer<T>) -> Result<f64, OpError> {
        let theta = theta.to_vec()?;
        let rows = self.rows(&self.predictors(&theta)?);
        self.back(&rows.slopes, &theta, gradient)?;
        self.curvature.trial = rows.curvatures;
        let ridge: f64 = theta
            .iter()
            .zip(&self.l2)
            .map(|(x, l2)| 0.5 * l2 * Element::to_f64(*x).powi(2))
            .sum();
        Ok(rows.loss + ridge)
    }

    fn accept(&mut self) {
        std::mem::swap(&mut self.curvature.accepted, &mut self.curvature.trial);
    }

    fn hessian_vector(
        &mut self,
        direction: &Buffer<T>,
        product: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let direction = direction.to_vec()?;
        let mut s = self.predictors(&direction)?;
        self.bend(&mut s);
        self.back(&s, &direction, product)
    }
}

impl<T: Number> Empirical<'_, T> {
    /// Whether every row with weight is on its class's side.
    pub(super) fn separates(&self, theta: &Buffer<T>) -> Result<bool, OpError> {
        let predictors = self.predictors(&theta.to_vec()?)?;
        let half = <T as Element>::from_f64(0.5);
        let zero = T::default();
        let rows = predictors.iter().zip(self.targets).zip(self.weights);
        Ok(rows
            .into_iter()
            .all(|((t, b), v)| *v == zero || *t != zero && (*b > half) == (*t > zero)))
    }

    /// Σ v·loss in f64 less what T makes of it, both from the linear predictors in T.
    pub(super) fn correction(&self, loss: Loss, theta: &Buffer<T>) -> Result<f64, OpError> {
        let predictors = self.predictors(&theta.to_vec()?)?;
        let rows = predictors.par_chunks(BLOCK).zip(
            self.targets
                .par_chunks(BLOCK)
                .zip(self.weights.par_chunks(BLOCK)),
        );
        let sums: Vec<f64> = rows
            .map(|(t, (targets, weights))| {
                let mut sum = 0.0;
                for ((t, b), v) in t.iter().zip(targets).zip(weights) {
                    let wide = loss.at(Element::to_f64(*t), Element::to_f64(*b));
                    let wide = wide.weighted(Element::to_f64(*v)).loss;
                    sum += wide - Element::to_f64(loss.at(*t, *b).weighted(*v).loss);
                }
                sum
            })
            .collect();
        Ok(sums.into_iter().sum())
    }
}
