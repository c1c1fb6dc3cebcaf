//! Products of X at several limits, beside what the model says of them.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use warpfuse::device::{Device, LinkProbe};
use warpfuse::matrix::Features;
use warpfuse::ops::{Matrix, MatrixOptions, predicted_places};
use warpfuse::plan::fused::Summation;

use super::{PER_ROW, Passes, dense, plain_bytes, sparse};

/// Products of each kind; the median is what counts.
const REPEATS: usize = 7;
/// Percent of X that may lie on the device.
const LIMITS: [u64; 4] = [25, 50, 75, 110];
/// Passes that are announced: what streams is page-locked at once.
const ANNOUNCED: u64 = 1_000_000;
/// Bytes by which the link is probed.
pub(super) const PROBED: usize = 4 << 30;

pub(super) fn run(device: &Device, entries: usize) -> Result<()> {
    let probe = device.probe_link(PROBED.min(entries * 4))?;
    println!(
        "{}",
        json!({ "what": "link", "device": device.name(), "rates": probe })
    );
    let rows = entries / PER_ROW;
    let cases: [(&str, Features<f32>); 4] = [
        ("dense, 512 columns", dense(entries / 512, 512)?),
        (
            "sparse, 50,000 columns, equal values",
            sparse(rows, 50_000, PER_ROW, true)?,
        ),
        (
            "sparse, 1,000,000 columns, equal values",
            sparse(rows, 1_000_000, PER_ROW, true)?,
        ),
        (
            "sparse, 1,000,000 columns",
            sparse(rows, 1_000_000, PER_ROW, false)?,
        ),
    ];
    for (name, features) in cases {
        at_limits(device, (name, &Arc::new(features)), &probe)?;
    }
    Ok(())
}

/// Fused products under each limit, beside what the model says of them.
pub(super) fn at_limits(
    device: &Device,
    (name, features): (&str, &Arc<Features<f32>>),
    probe: &LinkProbe,
) -> Result<()> {
    for summation in [Summation::Free, Summation::Reproducible] {
        let mut whole = None;
        for limit in LIMITS.iter().rev() {
            let options = MatrixOptions {
                device_bytes: Some(plain_bytes(features) * limit / 100),
                summation,
                ..MatrixOptions::default()
            };
            let found = products(device, features, options, &mut whole)?;
            // Further forms are not made here.
            let reads = if found.streams() { ANNOUNCED } else { 1 };
            let fit = predicted_places(device, features, reads, options);
            let predicted = fit.map(|fit| match found.streams() {
                true => fit.streaming().pass_seconds,
                false => fit.resident().pass_seconds,
            });
            let case = json!({ "what": name, "limit_percent": limit, "sums": summation, "predicted": predicted });
            report(&case, probe, found);
        }
    }
    Ok(())
}

/// What products came to.
struct Products {
    passes: Passes,
    residency: Value,
    rows: usize,
    nnz: usize,
}

impl Products {
    fn streams(&self) -> bool {
        self.residency["streams"] == Value::Bool(true)
    }
}

/// Times fused products, and compares them with those of all of X on the device, bit by bit where that is promised.
fn products(
    device: &Device,
    features: &Arc<Features<f32>>,
    options: MatrixOptions,
    whole: &mut Option<Vec<f32>>,
) -> Result<Products> {
    let matrix = Matrix::with_options(device, features.clone(), options)?;
    matrix.announce(ANNOUNCED)?;
    let passes = Passes::of(&matrix, REPEATS)?;
    let found = &passes.found;
    let expected = whole.get_or_insert_with(|| found.clone());
    if options.summation == Summation::Reproducible {
        let bits = |w: &[f32]| w.iter().map(|w| w.to_bits()).collect::<Vec<_>>();
        ensure!(
            bits(found) == bits(expected),
            "other bits than with all of X on the device"
        );
    }
    Ok(Products {
        passes,
        residency: serde_json::to_value(matrix.residency())?,
        rows: features.rows(),
        nnz: features.nnz(),
    })
}

fn report(case: &Value, probe: &LinkProbe, found: Products) {
    let Passes {
        seconds, crossed, ..
    } = &found.passes;
    let (median, crossed) = (found.passes.median(), *crossed);
    let at_the_links_rate = crossed as f64 / (probe.pinned_gbs * 1e9);
    // Where nothing crosses there is no rate.
    let of_the_link = (crossed > 0).then(|| median / at_the_links_rate);
    println!(
        "{}",
        json!({
            "case": case, "rows": found.rows, "nnz": found.nnz, "seconds": seconds, "median": median,
            "crossed_bytes": crossed, "bytes_per_entry": crossed as f64 / found.nnz as f64,
            "gb_per_s": crossed as f64 / median / 1e9, "pinned_gbs": probe.pinned_gbs, "of_the_link": of_the_link,
            "residency": found.residency,
        })
    );
}
