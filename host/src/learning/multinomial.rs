//! The objective of multinomial logistic regression where X has too many columns or classes for one pass: see
//! [`super::softmax`] for the others.
//!
//! The softmax is taken on the host between the products of the device, which read X once for up to eight classes: two
//! passes over X per evaluation and per Hessian product for each eight of them.

use super::design::Design;
use super::row_targets::RowTargets;
use super::sample_weights::SampleWeights;
use super::solver::{Objective, Value};
use crate::device::{Buffer, Device};
use crate::matrix::Element;
use crate::ops::{Number, OpError, vector};

/// `f(θ) = Σᵢ vᵢ·(ln Σ꜀ exp tᵢ꜀ − tᵢ,bᵢ) + ½·Σⱼ λⱼ·θⱼ²` with tᵢ꜀ = x̃ᵢ·θ꜀.
pub(super) struct Multinomial<'a, T: Number> {
    design: Design<'a, T>,
    classes: usize,
    /// b, numbers of classes.
    targets: &'a RowTargets<'a, T>,
    /// v, which add up to 1.
    weights: &'a SampleWeights,
    /// λ per coordinate.
    l2: Vec<f64>,
    curvature: Curvature<T>,
}

/// What the Hessian needs of a point: the k probabilities of each row.
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

impl<'a, T: Number> Multinomial<'a, T> {
    pub(super) fn new(
        design: Design<'a, T>,
        (targets, weights): (&'a RowTargets<'a, T>, &'a SampleWeights),
        l2: Vec<f64>,
    ) -> Self {
        Multinomial {
            classes: design.right_hand_sides(),
            design,
            targets,
            weights,
            l2,
            curvature: Curvature {
                accepted: Vec::new(),
                trial: Vec::new(),
            },
        }
    }

    fn rows(&self, t: &[T]) -> Rows<T> {
        let (m, k) = (self.design.rows(), self.classes);
        let mut probabilities = vec![T::default(); m * k];
        let mut slopes = probabilities.clone();
        let mut sum = 0.0;
        let mut row = vec![0.0; k];
        for i in 0..m {
            (0..k).for_each(|c| row[c] = Element::to_f64(t[i * k + c]));
            let class = Element::to_f64(self.targets.at(i)) as usize;
            let weight = self.weights.at(i);
            sum += weight * (softmax(&mut row) - Element::to_f64(t[i * k + class]));
            for c in 0..k {
                let hit = if c == class { 1.0 } else { 0.0 };
                probabilities[i * k + c] = <T as Element>::from_f64(row[c]);
                slopes[i * k + c] = <T as Element>::from_f64(weight * (row[c] - hit));
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
        let probabilities = &self.curvature.accepted;
        for i in 0..self.design.rows() {
            let at = |c: usize| i * self.classes + c;
            let mean: f64 = (0..self.classes)
                .map(|c| Element::to_f64(probabilities[at(c)]) * Element::to_f64(s[at(c)]))
                .sum();
            let weight = self.weights.at(i);
            for c in 0..self.classes {
                let p = Element::to_f64(probabilities[at(c)]);
                let bent = weight * p * (Element::to_f64(s[at(c)]) - mean);
                s[at(c)] = <T as Element>::from_f64(bent);
            }
        }
    }

    /// X̃ᵀ·slopes + λ ⊙ θ.
    fn back(&self, slopes: &[T], theta: &[T], out: &mut Buffer<T>) -> Result<(), OpError> {
        let mut product = self.design.transposed(slopes)?;
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

impl<T: Number> Objective<T> for Multinomial<'_, T> {
    fn device(&self) -> &Device {
        self.design.device()
    }

    fn len(&self) -> usize {
        self.design.len()
    }

    fn evaluate(&mut self, theta: &Buffer<T>, gradient: &mut Buffer<T>) -> Result<Value, OpError> {
        let theta = theta.to_vec()?;
        let rows = self.rows(&self.design.forward(&theta)?);
        self.back(&rows.slopes, &theta, gradient)?;
        self.curvature.trial = rows.curvatures;
        let ridge: f64 = theta
            .iter()
            .zip(&self.l2)
            .map(|(x, l2)| 0.5 * l2 * Element::to_f64(*x).powi(2))
            .sum();
        Ok(Value {
            value: rows.loss + ridge,
            gradient_norm: vector::dot(gradient, gradient)?.sqrt(),
        })
    }

    fn accept(&mut self) {
        std::mem::swap(&mut self.curvature.accepted, &mut self.curvature.trial);
    }

    fn hessian_vector(
        &mut self,
        direction: &Buffer<T>,
        product: &mut Buffer<T>,
        _: Option<&Buffer<f64>>,
    ) -> Result<(), OpError> {
        let direction = direction.to_vec()?;
        let mut s = self.design.forward(&direction)?;
        self.bend(&mut s);
        self.back(&s, &direction, product)
    }
}
