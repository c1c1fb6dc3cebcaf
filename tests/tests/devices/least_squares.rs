//! Least squares by R of X itself (`solver qr`): the coefficients of other solvers where those keep their digits, and the right
//! ones where normal equations lose them.

use anyhow::{Context, Result, bail, ensure};
use ndarray::Array2;
use warpfuse::device::Device;
use warpfuse::learning::{FitError, FitOptions, LinearRegression, Regressor, Ridge, Solver};
use warpfuse::matrix::{Element, Features};
use warpfuse::ops::Number;
use warpfuse_tests::generate::Random;
use warpfuse_tests::tolerance::unit_roundoff;

use super::suite::{Suite, Test};

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    for (rows, cols) in [(40, 1), (300, 7), (700, 31), (600, 32)] {
        for intercept in [true, false] {
            for alpha in [0.0, 0.7] {
                let b = if intercept { "-intercept" } else { "" };
                let name = format!("least_squares/{rows}x{cols}-alpha{alpha}{b}");
                let case = Case {
                    rows,
                    cols,
                    intercept,
                    alpha,
                };
                suite.add(Test::new(format!("{name}/f32")), move |device| {
                    as_by_singular_values::<f32>(device, case)
                });
                suite.add(Test::new(format!("{name}/f64")), move |device| {
                    as_by_singular_values::<f64>(device, case)
                });
            }
        }
    }
    suite.add(Test::new("least_squares/polynomial/f64"), polynomial);
    suite.add(
        Test::new("least_squares/nearly_equal_columns/f64"),
        nearly_equal,
    );
    suite.add(Test::new("least_squares/equal_columns/f32"), equal::<f32>);
    suite.add(Test::new("least_squares/equal_columns/f64"), equal::<f64>);
    suite.add(Test::new("least_squares/far_from_zero/f64"), far_from_zero);
    suite.add(Test::new("least_squares/chosen/f64"), chosen);
    suite.add(Test::new("least_squares/refused/f64"), refused);
}

#[derive(Debug, Clone, Copy)]
struct Case {
    rows: usize,
    cols: usize,
    intercept: bool,
    alpha: f64,
}

/// Uniform numbers of columns with means and scales of their own.
fn columns<T: Number>((rows, cols): (usize, usize), seed: u64) -> Array2<T> {
    let mut random = Random::new(seed);
    let scale = |j: usize| [1.0, 0.25, 3.0][j % 3];
    Array2::from_shape_fn((rows, cols), |(_, j)| {
        <T as Element>::from_f64(scale(j) * (random.signed() + 0.5 * (j % 4) as f64))
    })
}

/// With weights, an offset, penalty factors and a column left out: what singular values of the same numbers in f64 on the CPU
/// give.
fn as_by_singular_values<T: Number>(device: &Device, case: Case) -> Result<()> {
    let Case {
        rows,
        cols,
        intercept,
        alpha,
    } = case;
    let x = columns::<T>((rows, cols), 5);
    let wide = x.mapv(Element::to_f64);
    let mut random = Random::new(6);
    let y: Vec<T> = (0..rows)
        .map(|_| <T as Element>::from_f64(3.0 + random.signed()))
        .collect();
    let weights: Vec<f64> = (0..rows).map(|i| (i % 4) as f64).collect();
    let offset: Vec<f64> = (0..rows).map(|i| 0.1 * (i % 5) as f64).collect();
    let factors: Vec<f64> = (0..cols).map(|j| 1.0 + (j % 3) as f64).collect();
    let kept: Vec<bool> = (0..cols).map(|j| cols == 1 || j != 1).collect();
    let options = |more: bool| FitOptions {
        sample_weight: more.then_some(&weights[..]),
        offset: more.then_some(&offset[..]),
        penalty_factors: more.then_some(&factors[..]),
        columns: more.then_some(&kept[..]),
        ..FitOptions::default()
    };
    let params = Ridge::params()
        .alpha(alpha)
        .fit_intercept(intercept)
        .tolerance(1e-12);
    for more in [false, true] {
        let qr = params.clone().solver(Solver::Qr);
        let found = qr.fit_with(device, Features::Dense(x.clone()), &y, options(more))?;
        let in_f64: Vec<f64> = y.iter().map(|y| Element::to_f64(*y)).collect();
        let svd = params.clone().solver(Solver::Svd);
        let truth = Features::Dense(wide.clone());
        let truth = svd.fit_with(&Device::cpu(), truth, &in_f64, options(more))?;
        ensure!(
            found.report().solver == Solver::Qr,
            "{:?}",
            found.report().solver
        );
        // Uniform columns of a few scales: the condition is below 100, and squared where there is no room for the targets.
        let near = 2_000.0 * (rows as f64).sqrt() * unit_roundoff(T::DTYPE);
        close(&found, &truth, near).with_context(|| format!("with more: {more}"))?;
    }
    Ok(())
}

fn close(found: &Regressor, truth: &Regressor, near: f64) -> Result<()> {
    let size = truth
        .coef()
        .iter()
        .fold(truth.intercept().abs(), |a, w| a.max(w.abs()));
    let all = |model: &Regressor| [model.coef(), &[model.intercept()]].concat();
    let sides = all(found).into_iter().zip(all(truth));
    for (i, (a, b)) in sides.enumerate() {
        let error = (a - b).abs();
        ensure!(
            error <= near * size,
            "coefficient {i} is {a}, not {b} ± {:.1e}",
            near * size
        );
    }
    ensure!(found.converged(), "{:?}", found.report().convergence);
    Ok(())
}

/// 1 + 2x + … + 11x¹⁰ at half integers, exact in f64: powers up to the tenth as columns.
fn polynomial(device: &Device) -> Result<()> {
    let points: Vec<f64> = (0..1_230).map(|i| f64::from(i % 41) / 2.0 - 10.0).collect();
    let x = Array2::from_shape_fn((points.len(), 10), |(i, j)| points[i].powi(j as i32 + 1));
    let value = |x: &f64| (0..=10).map(|k| f64::from(k + 1) * x.powi(k)).sum::<f64>();
    let y: Vec<f64> = points.iter().map(value).collect();
    let error = |solver: Solver| -> Result<f64> {
        let params = LinearRegression::params().solver(solver).tolerance(1e-14);
        let model = params.fit(device, Features::Dense(x.clone()), &y)?;
        let of = |(j, w): (usize, &f64)| (w / (j as f64 + 2.0) - 1.0).abs();
        Ok(model.coef().iter().enumerate().map(of).fold(0.0, f64::max))
    };
    // Targets reach 10¹¹, and their rounding 10⁻⁵, beside a linear term of 10: 10⁻⁶ of its coefficient for each digit that the
    // condition takes. Steps from there take most of it away.
    let qr = error(Solver::Qr)?;
    ensure!(qr <= 1e-5, "{qr:.1e} off");
    Ok(())
}

/// Two columns that differ by 10⁻⁶ of another: the normal equations have a condition of 10¹².
fn nearly_equal(device: &Device) -> Result<()> {
    let mut x = columns::<f64>((800, 5), 8);
    let apart = columns::<f64>((800, 1), 18);
    let nearly = &x.column(0) + &(&apart.column(0) * 1e-6);
    x.column_mut(4).assign(&nearly);
    let w = [1.0, -2.0, 0.5, 3.0, 2.0];
    let y: Vec<f64> = x
        .rows()
        .into_iter()
        .map(|row| 4.0 + row.iter().zip(w).map(|(x, w)| x * w).sum::<f64>())
        .collect();
    let params = LinearRegression::params()
        .solver(Solver::Qr)
        .tolerance(1e-14);
    let model = params.fit(device, Features::Dense(x), &y)?;
    for (j, (found, w)) in model.coef().iter().zip(w).enumerate() {
        // 10⁶ · the roundings of sums of 800 terms.
        ensure!(
            (found - w).abs() <= 1e-7,
            "coefficient {j} is {found}, not {w}"
        );
    }
    Ok(())
}

/// Of two equal columns the coefficients are the same, and a constant one has none.
fn equal<T: Number>(device: &Device) -> Result<()> {
    let mut x = columns::<T>((500, 6), 9);
    let first = x.column(0).to_owned();
    x.column_mut(4).assign(&first);
    x.column_mut(5).fill(<T as Element>::from_f64(2.0));
    let y: Vec<T> = x.rows().into_iter().map(|row| row[0] + row[1]).collect();
    let params = LinearRegression::params().solver(Solver::Qr);
    let model = params.fit(device, Features::Dense(x), &y)?;
    let coef = model.coef();
    let near = 1e4 * unit_roundoff(T::DTYPE);
    for (j, w) in [0.5, 1.0, 0.0, 0.0, 0.5, 0.0].into_iter().enumerate() {
        ensure!(
            (coef[j] - w).abs() <= near,
            "coefficient {j} is {}, not {w}",
            coef[j]
        );
    }
    Ok(())
}

/// Columns around 10⁶ whose spread is 1.
fn far_from_zero(device: &Device) -> Result<()> {
    let x = columns::<f64>((400, 4), 10).mapv(|x| x + 1e6);
    let y: Vec<f64> = x
        .rows()
        .into_iter()
        .map(|row| 2.0 * row[0] - row[3])
        .collect();
    let params = LinearRegression::params().solver(Solver::Qr);
    let model = params.fit(device, Features::Dense(x), &y)?;
    for (j, w) in [2.0, 0.0, 0.0, -1.0].into_iter().enumerate() {
        ensure!(
            (model.coef()[j] - w).abs() <= 1e-8,
            "coefficient {j} is {}",
            model.coef()[j]
        );
    }
    Ok(())
}

/// Least squares without a penalty: what is chosen says why. R of X is taken on request alone: it was not timed on a GPU yet.
fn chosen(device: &Device) -> Result<()> {
    let x = columns::<f64>((400, 4), 11);
    let y: Vec<f64> = x.rows().into_iter().map(|row| row[0] - row[2]).collect();
    let model = LinearRegression::params().fit(device, Features::Dense(x), &y)?;
    let report = model.report();
    let expected = match device {
        Device::Emulator(_) => Solver::ConjugateGradient,
        // Small ones are solved on the host.
        _ => Solver::NewtonCholesky,
    };
    ensure!(
        report.solver == expected,
        "{:?}: {}",
        report.solver,
        report.solver_reason
    );
    ensure!(!report.solver_reason.is_empty());
    Ok(())
}

/// What R of X cannot serve is refused by name.
fn refused(device: &Device) -> Result<()> {
    let y = |rows: usize| vec![1.0; rows];
    let fit = |x: Features<f64>, alpha: f64| {
        let rows = x.rows();
        Ridge::params()
            .alpha(alpha)
            .solver(Solver::Qr)
            .fit(device, x, &y(rows))
    };
    let wide = Features::Dense(columns::<f64>((5, 9), 1));
    expect(fit(wide, 1.0), "more columns than rows")?;
    if matches!(device, Device::Emulator(_)) {
        let many = Features::Dense(columns::<f64>((90, 33), 1));
        expect(fit(many, 1.0), "more than 32 columns on a GPU")?;
        let sparse = sprs::CsMatI::new(
            (3, 2),
            vec![0_u64, 1, 2, 3],
            vec![0_u32, 1, 0],
            vec![1.0; 3],
        );
        expect(fit(Features::from(sparse), 1.0), "a sparse X on a GPU")?;
    }
    let lasso = warpfuse::learning::Lasso::params().solver(Solver::Qr);
    let x = Features::Dense(columns::<f64>((40, 3), 1));
    expect(lasso.fit(device, x, &y(40)), "an l1 penalty")
}

fn expect(found: Result<Regressor, FitError>, what: &str) -> Result<()> {
    match found {
        Err(error @ FitError::Combination { .. }) => {
            let text = error.to_string();
            ensure!(text.contains("solver qr") && text.contains(what), "{text}");
            Ok(())
        }
        Err(error) => bail!("{error}"),
        Ok(_) => bail!("{what} was fitted"),
    }
}
