//! How long the gradient may be where a fit ended.

use anyhow::{Result, ensure};
use warpfuse::reference::fits::Fit;
use warpfuse::reference::rounding::UNIT_F64;
use warpfuse_tests::tolerance::growth;

use super::{OF_A_ROW, TOLERANCE};

/// Of column j over the rows with weight.
pub fn variance(rows: &[&[f64]], weights: &[f64], j: usize) -> f64 {
    let of = rows.iter().zip(weights).filter(|(_, v)| **v > 0.0);
    let values: Vec<f64> = of.map(|(row, _)| row[j]).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    // A column without deviation is taken as it is.
    if variance > 0.0 { variance } else { 1.0 }
}

/// Fails unless the gradient at θ is no longer than `units` times its tolerance and what rounding makes of its
/// sums.
pub fn judge(truth: &Fit<'_>, theta: &[f64], units: f64) -> Result<()> {
    let end = truth.at(theta);
    let first = truth.at(&vec![0.0; theta.len()]);
    let length = |g: &[f64]| g.iter().map(|g| g * g).sum::<f64>().sqrt();
    let (m, n) = (truth.rows.len(), theta.len());
    let rounding = growth(2 * (m + n) + OF_A_ROW, UNIT_F64);
    for (a, found) in end.gradient.iter().enumerate() {
        // A slope is off by its own roundings, and by those of t times the curvature.
        let mut terms = truth.ridge[a] * theta[a].abs();
        for (i, row) in truth.rows.iter().enumerate() {
            let x = |j: usize| if j == 0 { 1.0 } else { row[j - 1] };
            let size: f64 = (0..n).map(|j| (x(j) * theta[j]).abs()).sum();
            let t: f64 = truth.offset[i] + (0..n).map(|j| x(j) * theta[j]).sum::<f64>();
            let point = truth
                .loss
                .at(t, truth.targets[i])
                .weighted(truth.weights[i]);
            let of_target = truth.weights[i] * truth.targets[i].abs();
            terms += x(a).abs() * (point.slope.abs() + of_target + point.curvature * (1.0 + size));
        }
        let bound = units * TOLERANCE * length(&first.gradient) + rounding * terms;
        ensure!(
            found.abs() <= bound,
            "element {a} of the gradient is {found:e}, not within {bound:e} of 0"
        );
    }
    Ok(())
}
