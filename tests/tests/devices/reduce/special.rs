//! NaN, infinities, signed zeros, ties, overflow.

use anyhow::{Result, ensure};
use warpfuse::device::Device;
use warpfuse::ops::reduce::{Parts, Reducer, Sought};
use warpfuse_tests::Subset;

use super::super::suite::{Suite, Test};
use super::check_moments;

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    suite.add(Test::new("reduce/nan/f32"), nan::<f32>);
    suite.add(Test::new("reduce/nan/f64"), nan::<f64>);
    suite.add(Test::new("reduce/infinities"), infinities);
    suite.add(Test::new("reduce/ties_and_signed_zeros"), ties);
    suite.add(Test::new("reduce/integers_at_the_limit"), limits);
    suite.add(Test::new("reduce/cancellation"), cancellation);
    suite.add(Test::new("reduce/large_mean"), large_mean);
    suite.add(Test::new("reduce/views"), views);
}

const LEN: usize = 5_003;

/// Wherever it is, a NaN shows in every result.
fn nan<T: super::Number + From<f32>>(device: &Device) -> Result<()> {
    let places: &[usize] = match Subset::of(device) {
        Subset::Full => &[0, 1, 1_023, 4_095, 4_096, LEN - 1],
        Subset::Small => &[1, 4_095, LEN - 1],
    };
    for &at in places {
        let mut x = vec![T::from(1.0_f32); LEN];
        x[at] = T::from(f32::NAN);
        let x = device.upload(&x)?;
        let mut reduce = Reducer::new(device)?;
        ensure!(super::value(reduce.sum(&x)?).is_nan(), "sum");
        ensure!(super::value(reduce.dot(&x, &x)?).is_nan(), "dot");
        ensure!(reduce.norm2(&x)?.is_nan(), "norm2");
        let moments = reduce.moments(&x)?;
        ensure!(
            moments.mean.is_nan() && moments.variance().is_nan(),
            "moments"
        );
        ensure!(reduce.arg_min(&x)? == Some(at), "arg-min");
        ensure!(reduce.arg_max(&x)? == Some(at), "arg-max");
        let values = [reduce.min(&x)?, reduce.max(&x)?];
        ensure!(
            values
                .iter()
                .all(|v| v.is_some_and(|v| v.into_f64().is_nan())),
            "{values:?}"
        );
        ensure!(
            format!("{:?}", reduce.norm_max(&x)?) == "Some(NaN)",
            "norm_max"
        );
        ensure!(reduce.all(&x)?, "a NaN is not zero");
    }
    Ok(())
}

fn infinities(device: &Device) -> Result<()> {
    let mut reduce = Reducer::new(device)?;
    let x = device.upload(&[1.0_f32, f32::INFINITY, -2.0])?;
    ensure!(reduce.sum(&x)? == f64::INFINITY, "sum");
    ensure!(
        reduce.max(&x)? == Some(f32::INFINITY) && reduce.min(&x)? == Some(-2.0),
        "extremes"
    );
    let x = device.upload(&[f32::NEG_INFINITY, f32::INFINITY])?;
    ensure!(reduce.sum(&x)?.is_nan(), "∞ − ∞");
    ensure!(reduce.norm1(&x)? == f64::INFINITY, "norm1");
    ensure!(reduce.min(&x)? == Some(f32::NEG_INFINITY), "min");
    // Squares and sums of f32 do not overflow.
    let x = device.upload(&[f32::MAX; 300])?;
    ensure!(
        reduce.sum(&x)? == 300.0 * f64::from(f32::MAX),
        "sum of the largest"
    );
    let norm = f64::from(f32::MAX) * 300_f64.sqrt();
    ensure!(
        (reduce.norm2(&x)? / norm - 1.0).abs() < 1e-14,
        "norm2 of the largest"
    );
    Ok(())
}

fn ties(device: &Device) -> Result<()> {
    let mut reduce = Reducer::new(device)?;
    let mut x = vec![0_i32; LEN];
    for at in [4_999, 2_000, 77] {
        x[at] = -5;
        x[at - 50] = 5;
    }
    let on = device.upload(&x)?;
    ensure!(reduce.arg_min(&on)? == Some(77), "the first of equals");
    ensure!(reduce.arg_max(&on)? == Some(27), "the first of equals");
    let mut zeros = vec![0.0_f64; LEN];
    zeros[4_500] = -0.0;
    let on = device.upload(&zeros)?;
    ensure!(reduce.arg_min(&on)? == Some(4_500), "−0 is less than +0");
    ensure!(
        reduce.arg_max(&on)? == Some(0) && !reduce.any(&on)?,
        "zeros"
    );
    Ok(())
}

fn limits(device: &Device) -> Result<()> {
    let mut reduce = Reducer::new(device)?;
    let x = device.upload(&[i64::MAX, 2, i64::MIN])?;
    ensure!(reduce.sum(&x)? == 1, "the sum wraps and comes back");
    ensure!(
        reduce.min(&x)? == Some(i64::MIN) && reduce.max(&x)? == Some(i64::MAX),
        "extremes"
    );
    ensure!(
        reduce.norm_max(&x)? == Some(1 << 63),
        "norm_max of the least integer"
    );
    let lowest = device.upload(&[i32::MIN; 40])?;
    ensure!(
        reduce.arg_max(&lowest)? == Some(0) && reduce.max(&lowest)? == Some(i32::MIN),
        "lowest"
    );
    ensure!(
        reduce.sum(&lowest)? == 40 * i64::from(i32::MIN),
        "a sum beyond 32 bits"
    );
    ensure!(reduce.norm_max(&lowest)? == Some(1 << 31), "norm_max");
    let highest = device.upload(&[i32::MAX; 40])?;
    ensure!(reduce.arg_min(&highest)? == Some(0), "highest");
    let lows = reduce.extremes(Sought::Greatest, &lowest, Parts::Segments(&[0, 0, 40]))?;
    ensure!(lows == [None, Some((i32::MIN, 0))], "{lows:?}");
    Ok(())
}

/// Large numbers that cancel leave the small ones: f32 is added in f64.
fn cancellation(device: &Device) -> Result<()> {
    let mut x = vec![1.0_f32; LEN];
    for i in (0..LEN - 1).step_by(2) {
        (x[i], x[i + 1]) = (3e7, -3e7);
    }
    let sum = Reducer::new(device)?.sum(&device.upload(&x)?)?;
    ensure!(sum == 1.0, "{sum}");
    Ok(())
}

/// A mean that is large beside the spread costs no digits.
fn large_mean(device: &Device) -> Result<()> {
    let x: Vec<f64> = (0..LEN).map(|i| 1e9 + (i % 7) as f64 * 0.25).collect();
    let found = Reducer::new(device)?.moments(&device.upload(&x)?)?;
    check_moments(found, &x)?;
    let (_, deviations) = warpfuse::reference::reduce::moments(&x);
    let relative = (found.deviations / deviations - 1.0).abs();
    ensure!(relative < 1e-6, "relative error {relative:e}");
    Ok(())
}

fn views(device: &Device) -> Result<()> {
    let x = ndarray::Array2::from_shape_fn((40, 30), |(i, j)| (i * 100 + j) as i64);
    let mut reduce = Reducer::new(device)?;
    for view in [x.view(), x.t()] {
        let on = warpfuse::ops::reduce::upload_view(device, view)?;
        ensure!(reduce.sum(&on)? == x.sum(), "sum");
        let (position, _) = view
            .iter()
            .enumerate()
            .max_by_key(|(_, x)| **x)
            .expect("not empty");
        ensure!(
            reduce.arg_max(&on)? == Some(position),
            "arg-max in the view's order"
        );
    }
    let column = warpfuse::ops::reduce::upload_view(device, x.column(3))?;
    ensure!(reduce.sum(&column)? == x.column(3).sum(), "column");
    Ok(())
}
