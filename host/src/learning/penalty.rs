//! Penalties and class weights, named as in scikit-learn.

use super::checks::{not_negative, sample_weights};
use super::labels::{Classes, Labels};
use super::options::FitOptions;
use super::sample_weights::SampleWeights;
use super::spec::ObjectiveSpec;
use super::{Codes, FitError};
use crate::parallel;

/// What is added to the loss of a classifier, before it is scaled.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Penalty {
    /// Nothing.
    None,
    /// ½‖w‖².
    #[default]
    L2,
    /// ‖w‖₁.
    L1,
    /// (1 − ρ)/2·‖w‖² + ρ‖w‖₁.
    ElasticNet {
        /// ρ, from 0 to 1.
        l1_ratio: f64,
    },
}

impl Penalty {
    /// The factor of ½‖w‖².
    pub fn l2(self) -> f64 {
        match self {
            Penalty::None | Penalty::L1 => 0.0,
            Penalty::L2 => 1.0,
            Penalty::ElasticNet { l1_ratio } => 1.0 - l1_ratio,
        }
    }

    /// The factor of ‖w‖₁.
    pub fn l1(self) -> f64 {
        match self {
            Penalty::None | Penalty::L2 => 0.0,
            Penalty::L1 => 1.0,
            Penalty::ElasticNet { l1_ratio } => l1_ratio,
        }
    }
}

/// What columns are to be multiplied by instead of penalties multiplied by these factors: a column of 1/f-th the size has a
/// coefficient f times as large, which an l1 penalty sees as f times as dear, and an l2 penalty as f² times. `None` where
/// there is nothing to multiply, or no such scaling: of a factor 0, or of both penalties.
pub(super) fn scaling(spec: &ObjectiveSpec, factors: Option<&[f64]>) -> Option<Vec<f64>> {
    let factors = factors.filter(|factors| is_scaling(spec, factors))?;
    let inverse = |factor: &f64| {
        if spec.l1 > 0.0 {
            1.0 / factor
        } else {
            1.0 / factor.sqrt()
        }
    };
    Some(factors.iter().map(inverse).collect())
}

/// The factors, where [`scaling`] does not stand for them and there is a penalty to multiply.
pub(super) fn exact_factors(spec: &ObjectiveSpec, factors: Option<&[f64]>) -> Option<Vec<f64>> {
    let penalised = spec.l1 > 0.0 || spec.l2 > 0.0;
    let factors = factors.filter(|factors| penalised && !is_scaling(spec, factors));
    factors.map(<[f64]>::to_vec)
}

fn is_scaling(spec: &ObjectiveSpec, factors: &[f64]) -> bool {
    let is_pure = (spec.l1 > 0.0) != (spec.l2 > 0.0);
    is_pure && factors.iter().all(|factor| *factor > 0.0)
}

/// What the rows of each class weigh, times their sample weights.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassWeight {
    /// 1.
    #[default]
    Uniform,
    /// Σ v / (k · Σ v of the class), v the sample weights, so that all classes weigh the same.
    Balanced,
    /// These, in the order of the classes.
    Given(Vec<f64>),
}

impl ClassWeight {
    /// Weights of the classes, given what the rows of each weigh.
    ///
    /// # Errors
    /// [`FitError::Length`] when there is not one weight per class, [`FitError::Parameter`] for weights that are
    /// negative or not finite.
    pub fn of_classes(&self, masses: &[f64]) -> Result<Vec<f64>, FitError> {
        let (all, k) = (masses.iter().sum::<f64>(), masses.len());
        match self {
            ClassWeight::Uniform => Ok(vec![1.0; k]),
            ClassWeight::Balanced => Ok(masses
                .iter()
                .map(|mass| {
                    if *mass > 0.0 {
                        all / (k as f64 * mass)
                    } else {
                        1.0
                    }
                })
                .collect()),
            ClassWeight::Given(weights) if weights.len() != k => Err(FitError::Length {
                what: "class weights",
                expected: k,
                found: weights.len(),
            }),
            ClassWeight::Given(weights) => {
                for weight in weights {
                    not_negative("a class weight", *weight)?;
                }
                Ok(weights.clone())
            }
        }
    }

    /// Weights of the rows: sample weights times class weights.
    pub(super) fn weigh(
        &self,
        classes: &Classes,
        codes: &Codes<'_>,
        options: &FitOptions<'_>,
    ) -> Result<SampleWeights, FitError> {
        let weights = sample_weights(codes.len(), options)?;
        if *self == ClassWeight::Uniform {
            return Ok(weights);
        }
        let by_class = self.of_classes(&masses(classes.len(), codes, &weights))?;
        let mut all = vec![0.0; codes.len()];
        parallel::for_each_item(all.chunks_mut(ROWS), |number, all| {
            for (row, weight) in (number * ROWS..).zip(all) {
                *weight = weights.at(row) * by_class[codes.at(row) as usize];
            }
        });
        Ok(SampleWeights::each(all))
    }
}

/// Rows that one task weighs.
const ROWS: usize = 1 << 14;

/// What the rows of each class weigh; the tasks' sums are added in order.
fn masses(classes: usize, codes: &Codes<'_>, weights: &SampleWeights) -> Vec<f64> {
    let of_task = |number: usize| {
        let mut masses = vec![0.0; classes];
        let rows = number * ROWS..codes.len().min((number + 1) * ROWS);
        rows.for_each(|row| masses[codes.at(row) as usize] += weights.at(row));
        masses
    };
    let tasks = parallel::map(codes.len().div_ceil(ROWS), of_task);
    let mut total = vec![0.0; classes];
    for masses in tasks {
        total.iter_mut().zip(masses).for_each(|(a, b)| *a += b);
    }
    total
}

macro_rules! labels_from_numbers {
    ($($t:ty),*) => { $(
        impl From<&[$t]> for Labels {
            fn from(labels: &[$t]) -> Labels {
                Labels::Numbers(labels.iter().map(|label| f64::from(*label)).collect())
            }
        }
    )* };
}

labels_from_numbers!(f64, f32, i32, u32, i8, u8);

impl From<&[&str]> for Labels {
    fn from(labels: &[&str]) -> Labels {
        Labels::Text(labels.iter().map(|label| (*label).to_owned()).collect())
    }
}
