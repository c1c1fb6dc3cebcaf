//! The same bits, whoever computes them.

use anyhow::{Result, ensure};
use serde_json::json;
use warpfuse::device::Device;
use warpfuse::learning::{
    Estimator, Family, FitOptions, Glm, Labels, LogisticRegression, Ridge, Targets,
};
use warpfuse::ops::{Matrix, MatrixOptions, Terms, Vectors};
use warpfuse::plan::fused::Summation;

use super::Wanted;
use super::members::{Member, Members};
use super::shapes::Shape;

/// Columns up to which fits are compared too: vectors of more take the CPU too long.
const FITTED: usize = 2_000_000;

/// Small enough for the CPU to do the same: the last one's sums are long enough to be added up in shares, and all entries of
/// the one before it have one value.
const SMALL: [Shape; 6] = [
    Shape::new("dense-28", (100_001, 28), 28),
    Shape::new("sparse-2k", (100_001, 2_000), 20),
    Shape::new("sparse-1m", (50_001, 1_000_000), 20),
    Shape::new("rcv1", (30_001, 47_236), 73),
    Shape {
        one_value: Some(0.258_198_9),
        ..Shape::new("one-hot", (100_001, 100_000), 15)
    },
    Shape::new("sparse-6m", (50_001, 6_000_001), 20),
];

/// Compares with one member on the CPU.
pub fn run(wanted: &Wanted, members: &Members) -> Result<()> {
    let mut cases = 0;
    for shape in SMALL.iter().filter(|shape| wanted.takes(shape.name)) {
        let shape = shape.divided(wanted.divide);
        let alone = Member {
            group: warpfuse::device::group::Group::alone(),
            device: Device::cpu(),
        };
        let expected = found(&alone, &shape)?;
        for size in &wanted.sizes {
            for found in members.run(*size, |member| found(member, &shape))? {
                for ((name, expected), (_, found)) in expected.iter().zip(&found) {
                    let place = expected.iter().zip(found).position(|(e, f)| e != f);
                    ensure!(
                        expected.len() == found.len() && place.is_none(),
                        "{} of {}: other bits by {size} members than by the CPU, the first at {place:?}: {:x?} {:x?}",
                        name,
                        shape.name,
                        place.map(|place| expected[place]),
                        place.map(|place| found[place]),
                    );
                    cases += 1;
                }
            }
        }
    }
    println!(
        "{}",
        json!({ "what": "bits", "cases": cases, "sizes": wanted.sizes, "same": true })
    );
    Ok(())
}

/// Bits of results.
type Found = Vec<(&'static str, Vec<u64>)>;

fn found(member: &Member, shape: &Shape) -> Result<Found> {
    let own = shape.features(member.rows(shape.rows))?;
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        ..MatrixOptions::default()
    };
    let device = &member.device;
    let x = Matrix::with_options(device, own.clone(), options)?;
    let numbers = |len: usize, seed: u64| warpfuse_benches::data::values::<f32>(len, seed);
    let (m, n) = (x.rows(), x.cols());
    let (y, p) = (
        device.upload(&numbers(n, 5))?,
        device.upload(&numbers(m, 6))?,
    );
    let v = device.upload(&numbers(m, 7))?;
    let weighted = Terms {
        weights: Some(&v),
        ..Terms::default()
    };
    let bits = |values: Vec<f32>| values.iter().map(|value| value.to_bits().into()).collect();
    let (mut w, mut q) = (device.zeros(n)?, device.zeros(m)?);
    let mut all = Found::new();
    x.fused(&y, &weighted, &mut w)?;
    all.push(("fused", bits(w.to_vec()?)));
    x.transposed(&p, &weighted, &mut w)?;
    all.push(("transposed", bits(w.to_vec()?)));
    x.forward(&y, &weighted, &mut q)?;
    all.push(("forward", bits(q.to_vec()?)));
    drop(x);
    if n > FITTED {
        return Ok(all);
    }
    let labels = Labels::Numbers(shape.labels());
    let counts: Vec<f32> = shape
        .labels()
        .iter()
        .map(|label| 2.0 * *label as f32)
        .collect();
    let poisson = Glm::params().family(Family::Poisson).alpha(0.1);
    let estimators: [([&'static str; 2], Estimator); 3] = [
        (["ridge", "ridge, spread"], Ridge::params().into()),
        (
            ["logistic", "logistic, spread"],
            LogisticRegression::params().into(),
        ),
        (["poisson", "poisson, spread"], poisson.into()),
    ];
    for (names, estimator) in estimators {
        let fit = |vectors| -> Result<Vec<u64>> {
            let options = MatrixOptions { vectors, ..options };
            let estimator = estimator.clone().matrix_options(options);
            let targets = match estimator.is_classifier() {
                true => Targets::Labels(&labels),
                false => Targets::Numbers(&counts),
            };
            let model = estimator.fit_with(device, own.clone(), targets, FitOptions::default())?;
            let coefficients = [model.coef().concat(), model.intercept().to_vec()].concat();
            Ok(coefficients.iter().map(|c| c.to_bits()).collect())
        };
        let replicated = fit(Vectors::Replicated)?;
        let spread = match member.group.is_alone() {
            true => replicated.clone(),
            false => fit(Vectors::Spread)?,
        };
        all.extend(names.into_iter().zip([replicated, spread]));
    }
    Ok(all)
}
