//! Losses of all rows by their linear predictors, in f64.

use super::design::grouped;
use crate::learning::spec::SampleLoss;
use crate::ops::objective::{Loss, Point};

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
    /// Losses and derivatives at `predictors`, m × k.
    pub(super) fn judge(&self, predictors: &[f64]) -> Judged {
        let k = self.loss.predictors();
        let groups = grouped(self.targets.len(), PER_LOSS * k, |rows| {
            let mut part = Judged {
                loss: 0.0,
                slopes: Vec::with_capacity(rows.len() * k),
                kept: Vec::with_capacity(rows.len() * k),
            };
            for i in rows {
                self.judge_row(i, &predictors[i * k..(i + 1) * k], &mut part);
            }
            part
        });
        let mut groups = groups.into_iter();
        let mut all = groups.next().expect("one group at least");
        for group in groups {
            all.loss += group.loss;
            all.slopes.extend(group.slopes);
            all.kept.extend(group.kept);
        }
        all
    }

    fn judge_row(&self, i: usize, predictors: &[f64], out: &mut Judged) {
        let (target, weight) = (self.targets[i], self.weights[i]);
        match self.loss {
            SampleLoss::Single(loss) => {
                let point = loss.at(predictors[0], target).weighted(weight);
                out.loss += point.loss;
                out.slopes.push(point.slope);
                out.kept.push(point.curvature);
            }
            SampleLoss::Multinomial { classes } => {
                let from = out.kept.len();
                out.kept.extend_from_slice(predictors);
                let own = &mut out.kept[from..];
                let class = target as usize;
                out.loss += weight * (softmax(own) - predictors[class]);
                for c in 0..classes {
                    let hit = if c == class { 1.0 } else { 0.0 };
                    out.slopes.push(weight * (own[c] - hit));
                }
            }
        }
    }

    /// Σ v·loss alone, at `predictors` + t·`along`.
    pub(super) fn along(&self, predictors: &[f64], along: &[f64], t: f64) -> f64 {
        let k = self.loss.predictors();
        let parts = grouped(self.targets.len(), PER_LOSS * k, |rows| {
            let mut row = vec![0.0; k];
            let mut sum = 0.0;
            for i in rows {
                for c in 0..k {
                    row[c] = predictors[i * k + c] + t * along[i * k + c];
                }
                sum += self.loss_of(i, &mut row);
            }
            sum
        });
        parts.into_iter().sum()
    }

    fn loss_of(&self, i: usize, row: &mut [f64]) -> f64 {
        let (target, weight) = (self.targets[i], self.weights[i]);
        match self.loss {
            SampleLoss::Single(loss) => value(loss, row[0], target, weight),
            SampleLoss::Multinomial { .. } => {
                let own = row[target as usize];
                weight * (softmax(row) - own)
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

fn value(loss: Loss, t: f64, b: f64, weight: f64) -> f64 {
    let point: Point<f64> = loss.at(t, b).weighted(weight);
    point.loss
}

/// Turns predictors into probabilities; ln Σ eᵗ.
fn softmax(row: &mut [f64]) -> f64 {
    crate::learning::multinomial::softmax(row)
}
