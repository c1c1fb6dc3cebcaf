//! Penalties and class weights, named as in scikit-learn.

use super::FitError;
use super::fit::{Extras, not_negative, sample_weights};
use super::labels::{Classes, Labels};

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

/// What the rows of each class weigh, times their sample weights.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassWeight {
    /// 1.
    #[default]
    Uniform,
    /// m / (k · rows of the class), so that all classes weigh the same.
    Balanced,
    /// These, in the order of the classes.
    Given(Vec<f64>),
}

impl ClassWeight {
    /// Weights of the classes, given how many rows each has.
    ///
    /// # Errors
    /// [`FitError::Length`] when there is not one weight per class, [`FitError::Parameter`] for weights that are
    /// negative or not finite.
    pub fn of_classes(&self, counts: &[usize]) -> Result<Vec<f64>, FitError> {
        let (rows, k) = (counts.iter().sum::<usize>() as f64, counts.len());
        match self {
            ClassWeight::Uniform => Ok(vec![1.0; k]),
            ClassWeight::Balanced => Ok(counts
                .iter()
                .map(|count| rows / (k as f64 * *count as f64))
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
        codes: &[u32],
        extras: &Extras<'_>,
    ) -> Result<Vec<f64>, FitError> {
        let mut counts = vec![0; classes.len()];
        codes.iter().for_each(|code| counts[*code as usize] += 1);
        let by_class = self.of_classes(&counts)?;
        let mut weights = sample_weights(codes.len(), extras)?;
        for (weight, code) in weights.iter_mut().zip(codes) {
            *weight *= by_class[*code as usize];
        }
        Ok(weights)
    }
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
