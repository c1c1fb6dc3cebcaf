//! The repository's data set, and scikit-learn's `Ridge` on it.

use anyhow::{Context, Result};
use serde_json::Value;
use warpfuse::io::{ReadOptions, read};
use warpfuse::matrix::{Dataset, Features};

use crate::ridge::{Intercept, Ridge};

// In the program, so that it runs on a machine without the repository.
const DIABETES: &[u8] = include_bytes!("../../host/examples/data/diabetes.libsvm");
const RIDGE: &str = include_str!("../../host/examples/data/diabetes.ridge.json");

/// Condition number of XᵀX of the diabetes data: eigenvalues from 4.0242 down to 0.0085603.
pub const CONDITION: f64 = 470.0;
/// How the data are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// As the file has them.
    Sparse,
    /// Row by row, zeros and all.
    Dense,
}

/// The data set, through the reader.
///
/// # Errors
/// When there is no place for a temporary file, or the reader fails.
pub fn data(storage: Storage) -> Result<Dataset<f64>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("diabetes.libsvm");
    std::fs::write(&path, DIABETES)?;
    let data = read::<f64>(&path, &ReadOptions::default())?;
    let features = match (storage, data.features) {
        (Storage::Dense, Features::Sparse(x)) => Features::Dense(x.to_dense()),
        (_, features) => features,
    };
    Ok(Dataset { features, ..data })
}

/// One of scikit-learn's fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// λ, scikit-learn's `alpha`.
    pub l2: f64,
    /// Whether an intercept is fitted.
    pub intercept: Intercept,
    /// Coefficients and intercept.
    pub model: Ridge,
    /// R² on the same data.
    pub r2: f64,
    /// Root of the mean squared error on the same data.
    pub rmse: f64,
}

/// All of scikit-learn's fits.
///
/// # Errors
/// When the file is not as it was written.
pub fn references() -> Result<Vec<Reference>> {
    let file: Value = serde_json::from_str(RIDGE)?;
    let cases = file["cases"]
        .as_array()
        .context("the reference has cases")?;
    cases.iter().map(reference).collect()
}

fn reference(case: &Value) -> Result<Reference> {
    let number = |value: &Value| value.as_f64().context("a number");
    let coef = case["coef"].as_array().context("coefficients")?;
    let fitted = case["fit_intercept"].as_bool().context("fit_intercept")?;
    Ok(Reference {
        l2: number(&case["alpha"])?,
        intercept: if fitted {
            Intercept::Fitted
        } else {
            Intercept::Zero
        },
        model: Ridge {
            coef: coef.iter().map(number).collect::<Result<_>>()?,
            intercept: number(&case["intercept"])?,
        },
        r2: number(&case["r2"])?,
        rmse: number(&case["rmse"])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ridge::ridge;

    #[test]
    fn cholesky_agrees_with_scikit_learn() {
        let data = data(Storage::Dense).expect("the data are there");
        let (Features::Dense(x), Some(targets)) = (data.features, data.targets) else {
            panic!("dense features and targets were requested");
        };
        for expected in references().expect("the reference is there") {
            let found = ridge(&x, &targets, expected.l2, expected.intercept);
            for (found, expected) in found.coef.iter().zip(&expected.model.coef) {
                assert!(
                    (found - expected).abs() <= 1e-10 * expected.abs(),
                    "{found} {expected}"
                );
            }
        }
    }
}
