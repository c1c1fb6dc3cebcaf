//! Kernel ridge regression against a dense factorisation in f64.

use anyhow::{Result, ensure};
use gpu_kernels::kernel_sum::KernelFunction;
use ndarray::Array2;
use warpfuse::device::Device;
use warpfuse::learning::KernelRidge;
use warpfuse::matrix::Element;
use warpfuse::ops::Number;
use warpfuse::reference::kernel_sum as reference;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::ridge::solve;
use warpfuse_tests::tolerance::{Truth, compare};

use super::suite::{Suite, Test};

const LENGTH: f64 = 0.3;

/// Adds fits of all functions, and one of 2,000 points where that is quick.
pub fn add(suite: &mut Suite) {
    for function in KernelFunction::ALL {
        let name = |dtype: &str| format!("kernel_ridge/{function}/{dtype}");
        suite.add(Test::new(name("f32")), move |device| {
            agrees::<f32>(device, function, 40, 3)
        });
        suite.add(Test::new(name("f64")), move |device| {
            agrees::<f64>(device, function, 40, 3)
        });
    }
    let large = Test::new("kernel_ridge/2000_points")
        .within(Subset::Full)
        .of_entries();
    suite.add(large, |device| {
        agrees::<f32>(device, KernelFunction::Gaussian, 2_000, 3)?;
        agrees::<f64>(device, KernelFunction::Matern52, 2_000, 5)
    });
}

/// The coefficients that solve (K + λI)·a = t, up to the residual that was requested.
fn agrees<T: Number>(
    device: &Device,
    function: KernelFunction,
    n: usize,
    dims: usize,
) -> Result<()> {
    let random = &mut Random::new(n as u64);
    let points = Array2::from_shape_simple_fn((n, dims), || number::<T>(random.unit()));
    let targets: Vec<T> = (0..n).map(|_| number(random.signed())).collect();
    let (alpha, tolerance) = (0.05, 1e-9);
    let params = KernelRidge::params()
        .kernel(function, LENGTH)
        .alpha(alpha)
        .tolerance(tolerance);
    let model = params.rank(30).fit(device, points.view(), &targets)?;
    ensure!(model.converged(), "{:?}", model.report());

    let wide = points.mapv(Element::to_f64);
    let row = |i: usize| wide.row(i).to_vec();
    let rows: Vec<Vec<f64>> = (0..n).map(row).collect();
    let k = |(i, j): (usize, usize)| reference::value(function, LENGTH, &rows[i], &rows[j]);
    let matrix = Array2::from_shape_fn((n, n), k) + Array2::<f64>::eye(n) * alpha;
    let wanted: Vec<f64> = targets.iter().map(|t| Element::to_f64(*t)).collect();
    let norm = wanted.iter().map(|t| t * t).sum::<f64>().sqrt();
    let exact = solve(matrix.clone(), wanted.into());
    // ‖(K + λI)⁻¹‖ ≤ 1/λ turns the residual into an error; K itself is good to some units of f64.
    let bound = (tolerance + 1e-12) * norm / alpha;
    let bounds = vec![bound; n];
    let values = exact.to_vec();
    compare(model.dual_coef(), &Truth { values, bounds })?;

    let predicted = model.predict(device, points.view())?;
    let fitted = matrix.dot(&exact) - &exact * alpha;
    let loss = if size_of::<T>() == 4 { 1e-5 } else { 1e-9 };
    let sums = matrix.map(|value| value.abs()).dot(&exact.map(|a| a.abs()));
    let bounds = sums
        .iter()
        .map(|sum| loss * sum + n as f64 * bound)
        .collect();
    let values = fitted.to_vec();
    compare(&predicted, &Truth { values, bounds })?;
    Ok(())
}

fn number<T: Number>(value: f64) -> T {
    <T as Element>::from_f64(value)
}
