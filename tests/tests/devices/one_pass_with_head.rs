//! How often objectives read a sparse X whose frequent columns are kept apart: once, head or not, by what the emulator
//! counts of each line of their kernels.

use anyhow::{Result, ensure};
use warpfuse::ops::Matrix;
use warpfuse::ops::objective::{
    Evaluation, HeadSize, Intercept, Loss, ObjectiveOut, ObjectiveSums,
};

use super::passes::{FEW_ROWS, REST, by_line, counting, profiles, sparse, value};
use super::suite::{Suite, Test};

/// Columns in the head, of 30: ten are in every row of 20 entries, two in most.
const PLACES: u32 = 12;
/// Entries in other columns, about: what y is loaded for.
const OUTSIDE: f64 = 0.41;

/// Adds one evaluation and one Hessian product of each kind; the emulator is the test's own.
pub fn add(suite: &mut Suite) {
    for (name, loss) in [
        ("squared", Loss::Squared),
        ("logistic", Loss::Logistic),
        ("hinge", Loss::SquaredHinge),
    ] {
        let test = Test::new(format!("passes/head_{name}/f32")).of_entries();
        suite.add(test, move |_| counted(loss));
    }
}

fn counted(loss: Loss) -> Result<()> {
    let device = counting();
    let mut x = Matrix::new(&device, sparse(FEW_ROWS))?;
    let told = x.tell_head(HeadSize::Places(PLACES))?;
    ensure!(told == PLACES as usize, "{told} places");
    let y: Vec<f32> = (0..x.cols()).map(|column| value(3, column)).collect();
    let side = |row: usize| if row.is_multiple_of(3) { 1.0 } else { 0.0 };
    let target: Vec<f32> = match loss {
        Loss::SquaredHinge => (0..FEW_ROWS).map(|row| 2.0 * side(row) - 1.0).collect(),
        _ => (0..FEW_ROWS).map(side).collect(),
    };
    let (y, target) = (device.upload(&y)?, device.upload(&target)?);
    let mut sums = device.zeros(ObjectiveSums::LEN)?;
    let mut gradient = device.zeros::<f32>(x.cols())?;
    let mut curvature = device.zeros::<f32>(FEW_ROWS)?;
    let out = ObjectiveOut {
        curvature: Some(&mut curvature),
        ..ObjectiveOut::new(&mut sums, &mut gradient)
    };
    x.objective(&Evaluation::new(loss, &target), &y, out)?;
    let out = ObjectiveOut::new(&mut sums, &mut gradient);
    x.hessian_product(&curvature, Intercept::Absent, &y, out)?;

    let passes = (2 * 20 * FEW_ROWS) as f64;
    let is_head = |name: &str| name.starts_with("objective_sparse") && name.contains("_head_");
    let counts = by_line(&profiles(&device), is_head);
    let mut loads: Vec<f64> = counts
        .into_values()
        .map(|loads| loads as f64 / passes)
        .collect();
    loads.sort_by(|a, b| b.total_cmp(a));
    // Values and indices of X, then y and what belongs to rows.
    let once = |loads: &f64| (loads - 1.0).abs() <= 0.05;
    let of_y = |loads: &f64| (loads / OUTSIDE - 1.0).abs() <= 0.05;
    ensure!(
        loads.len() > 2
            && loads[..2].iter().all(once)
            && loads[2..].iter().all(|loads| *loads <= REST)
            && loads[2..].iter().any(of_y),
        "loads per entry and pass, line by line: {loads:.3?}"
    );
    Ok(())
}
