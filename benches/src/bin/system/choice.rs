//! The cost model judged: passes over problems of all sizes, predicted and timed in every place.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use warpfuse::device::Device;
use warpfuse::matrix::Features;
use warpfuse::ops::{MatrixOptions, MeasuredPlace, predicted_places};
use warpfuse::plan::alternatives::{Alternative, Fit, FitPlace};

use super::{dense, plain_bytes, sparse};

/// A shape, with how often it is read and how much of it a GPU may have.
struct Case {
    rows: usize,
    cols: usize,
    /// Entries of a row; `None` for dense rows.
    per_row: Option<usize>,
    /// Whether all values are equal.
    is_equal: bool,
    /// Each number of reads, with the percent of X that the device may have, 0 for no limit.
    wants: &'static [(u64, u64)],
}

const fn of_dense(rows: usize, cols: usize, wants: &'static [(u64, u64)]) -> Case {
    Case {
        rows,
        cols,
        per_row: None,
        is_equal: false,
        wants,
    }
}

const fn of_sparse(rows: usize, cols: usize, is_equal: bool, wants: &'static [(u64, u64)]) -> Case {
    Case {
        rows,
        cols,
        per_row: Some(16),
        is_equal,
        wants,
    }
}

/// From 1 KB to 8 GB, none of them a shape that a constant was fitted to; the last one has 40 GB. Long ones come last.
const CASES: [Case; 14] = [
    of_dense(16, 16, &[(10, 0), (1_000, 0)]),
    of_dense(1_000, 24, &[(10, 0), (1_000, 0)]),
    of_sparse(1_500, 800, false, &[(10, 0), (1_000, 0)]),
    of_dense(30_000, 72, &[(1, 0), (10, 0), (300, 0), (300, 40)]),
    of_sparse(
        60_000,
        30_000,
        true,
        &[(1, 0), (10, 0), (300, 0), (300, 10)],
    ),
    of_dense(400_000, 60, &[(1, 0), (30, 0), (300, 20), (300, 80)]),
    of_sparse(700_000, 250_000, false, &[(1, 0), (30, 0), (300, 20)]),
    of_sparse(6_000_000, 40_000, true, &[(3, 0), (300, 0), (300, 8)]),
    of_dense(3_000_000, 100, &[(1, 0), (10, 0), (20, 30), (200, 30)]),
    of_sparse(
        8_000_000,
        2_000_000,
        true,
        &[(3, 0), (300, 0), (20, 25), (200, 25)],
    ),
    of_sparse(8_000_000, 3_000_000, false, &[(100, 0), (200, 50)]),
    of_dense(4_000_000, 400, &[(2, 0), (20, 75)]),
    of_sparse(30_000_000, 60_000, true, &[(20, 10), (200, 10)]),
    of_dense(10_000_000, 1_000, &[(5, 0), (20, 50)]),
];

/// Times all cases, as far as `seconds` allow.
pub(super) fn run(device: &Device, seconds: f64, part: usize) -> Result<()> {
    let begun = Instant::now();
    for case in &CASES {
        let Case {
            rows,
            cols,
            per_row,
            is_equal,
            wants,
        } = *case;
        let rows = if rows > 10_000 { rows / part } else { rows };
        let features = Arc::new(match per_row {
            None => dense(rows, cols)?,
            Some(per_row) => sparse(rows, cols, per_row, is_equal)?,
        });
        for (reads, percent) in wants {
            if begun.elapsed().as_secs_f64() > seconds {
                println!("{}", json!({ "what": "choice", "cut": "no time left" }));
                return Ok(());
            }
            one(device, &features, *reads, *percent)?;
        }
    }
    Ok(())
}

fn one(device: &Device, features: &Arc<Features<f32>>, reads: u64, percent: u64) -> Result<()> {
    let bytes = plain_bytes(features);
    let options = MatrixOptions {
        device_bytes: (percent > 0).then(|| bytes * percent / 100),
        ..MatrixOptions::default()
    };
    let fit = predicted_places(device, features, reads, options);
    let fit: Fit = fit.context("expected a GPU with kernels")?;
    let room = fit.room;
    // What streams where all of X fits is the same as what does not.
    let is_whole = fit.resident().fits;
    let fits = |one: &&Alternative| match one.place {
        FitPlace::Cpu => true,
        FitPlace::Resident => is_whole,
        _ => !is_whole,
    };
    let alternatives = fit.alternatives();
    let mut measured = Vec::new();
    for one in alternatives.iter().filter(fits) {
        measured.push(MeasuredPlace::of(
            device,
            features,
            (one, reads, room),
            MatrixOptions::default(),
        )?);
    }
    let chosen = &measured[0];
    let best = measured.iter().map(|one| one.seconds);
    let best = best.fold(f64::INFINITY, f64::min);
    println!(
        "{}",
        json!({
            "what": "choice", "rows": features.rows(), "cols": features.cols(), "nnz": features.nnz(),
            "sparse": features.is_sparse(), "bytes": bytes, "reads": reads, "limit_percent": percent,
            "predicted": alternatives, "measured": measured, "chosen": chosen.place,
            "regret": chosen.seconds / best - 1.0,
        })
    );
    Ok(())
}
