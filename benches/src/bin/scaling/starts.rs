//! Starts, fits and ends, one after the other.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;
use warpfuse::learning::{Estimator, FitOptions, Labels, LogisticRegression, Targets};
use warpfuse::ops::MatrixOptions;
use warpfuse::plan::fused::Summation;

use super::Wanted;
use super::members::{Member, Members};
use super::shapes::Shape;

/// Little enough that starts and ends take most of the time.
const SMALL: Shape = Shape::new("small", (2_000, 500), 20);

/// Counts and times them.
pub fn run(wanted: &Wanted, members: &Members) -> Result<()> {
    let (size, begun) = (wanted.most(), Instant::now());
    let mut longest = 0.0_f64;
    let mut first = None;
    for _ in 0..wanted.times {
        let one = Instant::now();
        for found in members.run(size, fit)? {
            let expected = first.get_or_insert_with(|| found.clone());
            ensure!(found == *expected, "a fit has other bits than the first");
        }
        longest = longest.max(one.elapsed().as_secs_f64());
    }
    println!(
        "{}",
        json!({
            "what": "starts",
            "members": size,
            "times": wanted.times,
            "seconds": begun.elapsed().as_secs_f64(),
            "longest_seconds": longest,
        })
    );
    Ok(())
}

/// The bits of a small model.
fn fit(member: &Member) -> Result<Vec<u64>> {
    let own = SMALL.features(member.rows(SMALL.rows))?;
    let labels = Labels::Numbers(SMALL.labels());
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        ..MatrixOptions::default()
    };
    let estimator: Estimator = LogisticRegression::params().into();
    let estimator = estimator.matrix_options(options);
    let targets = Targets::<f32>::Labels(&labels);
    let model = estimator.fit_with(&member.device, own, targets, FitOptions::default())?;
    let coef = model.coef().concat();
    Ok(coef.iter().map(|number| number.to_bits()).collect())
}
