//! Files of kind `linreg`, which linear regression had of its own in early versions.

use serde::Deserialize;

use super::{of_json, text};
use crate::learning::report::FitReport;
use crate::learning::solver::Solver;
use crate::learning::weights::Weights;
use crate::learning::{Convergence, LinearRegression, RegressorParams};

/// `params` of such a file.
#[derive(Deserialize)]
struct Params {
    l2: f64,
    tolerance: f64,
    max_iter: usize,
    fit_intercept: bool,
}

/// `report` of such a file.
#[derive(Deserialize)]
struct Report {
    rows: usize,
    nnz: u64,
    n_iter: usize,
    convergence: Convergence,
    residual_ratio: f64,
    metrics: Metrics,
    device: String,
    transfer_seconds: f64,
    seconds: f64,
    peak_device_bytes: u64,
}

#[derive(Deserialize)]
struct Metrics {
    rmse: f64,
}

/// As files have them today.
///
/// # Errors
/// What is wrong with the JSON.
pub(super) fn read(
    params: &str,
    report: &str,
    weights: &Weights,
) -> Result<(RegressorParams, FitReport), String> {
    let of: Params = of_json(params)?;
    let report: Report = serde_json::from_str(report).map_err(text)?;
    let squares: f64 = weights.coef.iter().flatten().map(|w| w * w).sum();
    let params = LinearRegression::params()
        .l2(of.l2)
        .tolerance(of.tolerance)
        .max_iter(of.max_iter)
        .fit_intercept(of.fit_intercept);
    let report = FitReport {
        rows: report.rows,
        nnz: report.nnz,
        n_iter: report.n_iter,
        convergence: report.convergence,
        gradient_ratio: report.residual_ratio,
        objective: report.rows as f64 * report.metrics.rmse.powi(2) + of.l2 * squares,
        solver: Solver::ConjugateGradient,
        solver_reason: String::new(),
        relative_gap: None,
        history: Vec::new(),
        device: report.device,
        transfer_seconds: report.transfer_seconds,
        seconds: report.seconds,
        peak_device_bytes: report.peak_device_bytes,
        reproducible: false,
        has_offset: false,
    };
    Ok((params.into(), report))
}
