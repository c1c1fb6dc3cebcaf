//! What a report's curves cost: X is read once, and the predictors leave the device once, by what the emulator counts.

use anyhow::{Result, ensure};
use warpfuse::device::Device;
use warpfuse::learning::{Diagnostics, Glm, Labels, LogisticRegression, Model, Ridge, Targets};
use warpfuse::matrix::Features;
use warpfuse::ops::Matrix;

use super::passes::{REST, by_line, counting, dense, profiles, sparse, value};
use super::suite::{Suite, Test};

const ROWS: usize = 512;

/// Adds the models whose curves are counted; the emulator is the test's own.
pub fn add(suite: &mut Suite) {
    type Case = (&'static str, fn() -> Features<f32>, &'static [f64]);
    // Loads per entry, line by line: packs of 4; values, indices and y.
    let cases: [Case; 2] = [
        ("dense", dense, &[0.25]),
        ("sparse", || sparse(ROWS), &[1.0, 1.0, 1.0]),
    ];
    for (storage, features, expected) in cases {
        for model in ["logreg", "ridge", "poisson"] {
            let name = format!("curves/{model}_{storage}/f32");
            suite.add(Test::new(name).of_entries(), move |_| {
                counted(model, features(), expected)
            });
        }
    }
}

fn counted(name: &str, features: Features<f32>, expected: &[f64]) -> Result<()> {
    let (device, entries) = (counting(), features.nnz() as f64);
    let labels = Labels::Numbers((0..ROWS).map(|row| (row * 7 % 13 % 2) as f64).collect());
    let numbers: Vec<f32> = (0..ROWS).map(|row| value(row, row % 7) + 2.0).collect();
    let targets = match name {
        "logreg" => Targets::Labels(&labels),
        _ => Targets::Numbers(&numbers),
    };
    let model = fitted(name, features.clone(), (&labels, &numbers))?;
    let matrix = Matrix::new(&device, features)?;
    let before = device.usage().received_bytes;
    let found = model.diagnose(&matrix, targets, None)?;
    let received = device.usage().received_bytes - before;
    let of_predictors = (ROWS * size_of::<f32>()) as u64;
    ensure!(
        received == of_predictors,
        "{received} bytes left the device, of which the predictors are {of_predictors}"
    );
    let mut loads: Vec<f64> = by_line(&profiles(&device), |_| true)
        .into_values()
        .map(|accesses| accesses as f64 / entries)
        .collect();
    loads.sort_by(|a, b| b.total_cmp(a));
    let (of_x, rest) = loads.split_at(expected.len().min(loads.len()));
    let near = |(found, expected): (&f64, &f64)| (found / expected - 1.0).abs() <= 0.05;
    let least = expected.last().copied().unwrap_or_default();
    let once = of_x.len() == expected.len() && of_x.iter().zip(expected).all(near);
    ensure!(
        once && rest.iter().all(|loads| *loads <= REST * least),
        "loads per entry, line by line: {loads:.3?}, expected {expected:?} and less"
    );
    exact(&found)
}

/// The model, fitted on the CPU: its own reads of X are not counted.
fn fitted(
    name: &str,
    features: Features<f32>,
    (labels, numbers): (&Labels, &[f32]),
) -> Result<Model> {
    let device = Device::cpu();
    Ok(match name {
        "logreg" => {
            let fit = LogisticRegression::params();
            Model::Classifier(fit.fit(&device, features, labels)?)
        }
        "ridge" => Model::Regressor(Ridge::params().fit(&device, features, numbers)?),
        _ => Model::Regressor(Glm::params().fit(&device, features, numbers)?),
    })
}

/// All rows take part in what was found.
fn exact(found: &Diagnostics) -> Result<()> {
    let rows = match found {
        Diagnostics::Classification(found) => found.rows,
        Diagnostics::Regression(found) => found.rows,
    };
    ensure!(rows == ROWS, "{rows} of {ROWS} rows");
    Ok(())
}
