//! Losses of all rows by their linear predictors, in f64.

use std::ops::Range;

use super::design::OfRows;
use super::groups::grouped;
use crate::learning::spec::SampleLoss;
use crate::ops::objective::losses_on_host;

/// Multiplications that a row's loss is worth, exponentials and all.
const PER_LOSS: usize = 64;

/// What rows make of their predictors.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    /// Σ v·loss; infinite or NaN outside the domain.
    pub(super) loss: f64,
    /// Derivatives of v·loss by each predictor, m × k.
    pub(super) slopes: Vec<f64>,
    /// v·loss'' of one predictor (m), or probabilities of k (m × k).
    pub(super) kept: Vec<f64>,
}

/// Targets and weights of the rows, and their loss.
#[derive(Debug, Clone, Copy)]
pub(super) struct Losses<'a> {
    pub(super) loss: SampleLoss,
    pub(super) targets: &'a [f64],
    /// v, which add up to 1.
    pub(super) weights: &'a [f64],
}

impl Losses<'_> {
    /// Multiplications that a row is worth.
    pub(super) fn per_row(&self) -> usize {
        PER_LOSS * self.loss.predictors()
    }

    /// Of some rows.
    pub(super) fn part(&self, rows: Range<usize>) -> Losses<'_> {
        Losses {
            loss: self.loss,
            targets: &self.targets[rows.clone()],
            weights: &self.weights[rows],
        }
    }

    /// Losses and derivatives of all rows at their predictors, on this thread: Σ v·loss.
    pub(super) fn judge(&self, of: OfRows<'_>) -> f64 {
        let OfRows {
            predictors,
            slopes,
            kept,
        } = of;
        match self.loss {
            SampleLoss::Single(loss) => {
                let rows = (self.targets, self.weights);
                losses_on_host(loss, predictors, rows, Some((slopes, kept)))
            }
            SampleLoss::Kinked(loss) => {
                let mut sum = 0.0;
                for (i, (t, slope)) in predictors.iter().zip(slopes).enumerate() {
                    let (value, of_row) = loss.at(*t, self.targets[i]);
                    sum += self.weights[i] * value;
                    *slope = self.weights[i] * of_row;
                }
                sum
            }
            SampleLoss::Multinomial { classes } => {
                kept.copy_from_slice(predictors);
                let rows = kept.chunks_exact_mut(classes);
                let slopes = slopes.chunks_exact_mut(classes);
                let mut sum = 0.0;
                for (i, (kept, slopes)) in rows.zip(slopes).enumerate() {
                    let (class, weight) = (self.targets[i] as usize, self.weights[i]);
                    let own = kept[class];
                    sum += weight * (softmax(kept) - own);
                    for (slope, p) in slopes.iter_mut().zip(&*kept) {
                        *slope = weight * p;
                    }
                    slopes[class] -= weight;
                }
                sum
            }
        }
    }

    /// Σ v·loss alone, at `predictors`.
    pub(super) fn value(&self, predictors: &[f64]) -> f64 {
        self.along(predictors, &[], 0.0)
    }

    /// The same at `predictors` + t·`along`.
    pub(super) fn along(&self, predictors: &[f64], along: &[f64], t: f64) -> f64 {
        let k = self.loss.predictors();
        let parts = grouped(self.targets.len(), PER_LOSS * k, |rows| {
            let of = |all: &[f64]| all[rows.start * k..rows.end * k].to_vec();
            let mut there = of(predictors);
            if t != 0.0 {
                let steps = &along[rows.start * k..];
                let moved = there.iter_mut().zip(steps);
                moved.for_each(|(there, step)| *there += t * step);
            }
            self.part(rows).sum_part(&mut there)
        });
        parts.into_iter().sum()
    }

    fn sum_part(&self, predictors: &mut [f64]) -> f64 {
        match self.loss {
            SampleLoss::Single(loss) => {
                losses_on_host(loss, predictors, (self.targets, self.weights), None)
            }
            SampleLoss::Kinked(loss) => {
                let rows = predictors.iter().zip(self.targets).zip(self.weights);
                rows.map(|((t, b), v)| v * loss.at(*t, *b).0).sum()
            }
            SampleLoss::Multinomial { classes } => {
                let rows = predictors.chunks_exact_mut(classes).enumerate();
                let each = rows.map(|(i, row)| {
                    let own = row[self.targets[i] as usize];
                    self.weights[i] * (softmax(row) - own)
                });
                each.sum()
            }
        }
    }

    /// Whether every row with weight is on its class's side, of a logistic loss.
    pub(super) fn separated(&self, predictors: &[f64]) -> bool {
        let rows = predictors.iter().zip(self.targets).zip(self.weights);
        rows.into_iter()
            .all(|((t, b), v)| *v == 0.0 || *t != 0.0 && (*b > 0.5) == (*t > 0.0))
    }
}

/// Turns predictors into probabilities; ln Σ eᵗ.
fn softmax(row: &mut [f64]) -> f64 {
    crate::learning::multinomial::softmax(row)
}
