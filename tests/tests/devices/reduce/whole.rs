//! Whole arrays.

use anyhow::{Result, ensure};
use warpfuse::device::Device;
use warpfuse::ops::OpError;
use warpfuse::ops::reduce::{Reducer, Reproducibility};
use warpfuse::reference::reduce::{self as reference, Bounded, Extreme};
use warpfuse::reference::rounding::UNIT_F64;
use warpfuse_tests::Subset;
use warpfuse_tests::tolerance::growth;

use super::super::suite::{Suite, Test};
use super::{Number, check_moments, close, doubles, draw, is_exact, value};

/// Around packs, warps, blocks, rows of 256 packs, chunks of four rows, and chunks in plenty.
const LENGTHS: [usize; 19] = [
    0, 1, 2, 3, 5, 31, 32, 33, 255, 257, 511, 513, 1_023, 1_025, 4_096, 4_097, 9_001, 1_000_003,
    4_300_001,
];
/// Those for emulators: one beside each edge.
const FEW_LENGTHS: [usize; 9] = [0, 1, 5, 33, 255, 513, 1_025, 4_097, 9_001];

/// Adds every length.
pub fn add<T: Number>(suite: &mut Suite) {
    // Longer arrays take the same path in every type.
    let lengths = LENGTHS
        .into_iter()
        .filter(|len| *len < 2_000_000 || T::NAME == "f32");
    for len in lengths {
        let subset = if FEW_LENGTHS.contains(&len) {
            Subset::Small
        } else {
            Subset::Full
        };
        let test = Test::new(format!("reduce/whole/{len}/{}", T::NAME)).within(subset);
        suite.add(test, move |device| run::<T>(device, len));
    }
    let name = format!("reduce/refuses_lengths/{}", T::NAME);
    suite.add(Test::new(name), refuses_lengths::<T>);
}

/// All results against f64 loops, and their bits against those of the CPU.
fn run<T: Number>(device: &Device, len: usize) -> Result<()> {
    let (x, y) = (draw::<T>(len, len as u64), draw::<T>(len, 7 + len as u64));
    let words = results(device, &x, &y, Reproducibility::Device)?;
    ensure!(
        words == results(&Device::cpu(), &x, &y, Reproducibility::Device)?,
        "other bits than the CPU's"
    );
    if Subset::of(device) == Subset::Small && T::NAME != "f32" {
        return Ok(());
    }
    let again = results(device, &x, &y, Reproducibility::Run)?;
    ensure!(
        again == results(device, &x, &y, Reproducibility::Run)?,
        "other bits on the second run"
    );
    Ok(())
}

/// Checks every operation, and gives the bits of the results.
fn results<T: Number>(
    device: &Device,
    x: &[T],
    y: &[T],
    level: Reproducibility,
) -> Result<Vec<u64>> {
    let (on_x, on_y) = (device.upload(x)?, device.upload(y)?);
    let mut reduce = Reducer::new(device)?.with_level(level);
    let (dx, dy) = (doubles(x), doubles(y));
    let sum = value(reduce.sum(&on_x)?);
    let dot = value(reduce.dot(&on_x, &on_y)?);
    let norm1 = value(reduce.norm1(&on_x)?);
    let norm2 = reduce.norm2(&on_x)?;
    let products = dx.iter().zip(&dy).map(|(x, y)| x * y);
    let squares = reference::sum(dx.iter().map(|x| x * x));
    check_sum::<T>("sum", sum, reference::sum(dx.iter().copied()), x.len())?;
    check_sum::<T>("dot", dot, reference::sum(products), x.len())?;
    check_sum::<T>(
        "norm1",
        norm1,
        reference::sum(dx.iter().map(|x| x.abs())),
        x.len(),
    )?;
    // Half the relative error of the squares, and the root's own.
    let relative = growth(x.len() + 4, UNIT_F64);
    close(
        "norm2",
        norm2,
        squares.value.sqrt(),
        relative * squares.value.sqrt(),
    )?;
    let moments = reduce.moments(&on_x)?;
    check_moments(moments, &dx)?;
    check_extremes(&mut reduce, &on_x, x, &dx)?;
    let nonzero = dx.iter().filter(|x| **x != 0.0).count();
    ensure!(reduce.count(&on_x)? == nonzero as u64, "count");
    ensure!(reduce.any(&on_x)? == (nonzero > 0), "any");
    ensure!(reduce.all(&on_x)? == (nonzero == x.len()), "all");
    let values = [sum, dot, norm1, norm2, moments.mean, moments.deviations];
    Ok(values.map(f64::to_bits).to_vec())
}

fn check_sum<T: Number>(what: &str, found: f64, truth: Bounded, terms: usize) -> Result<()> {
    let relative = if is_exact::<T>() {
        0.0
    } else {
        growth(terms + 2, UNIT_F64)
    };
    close(what, found, truth.value, relative * truth.magnitude)
}

fn check_extremes<T: Number>(
    reduce: &mut Reducer,
    on_x: &warpfuse::device::Buffer<T>,
    x: &[T],
    dx: &[f64],
) -> Result<()> {
    let least = reference::position(dx, Extreme::Least);
    let greatest = reference::position(dx, Extreme::Greatest);
    let largest = reference::position(dx, Extreme::Magnitude);
    ensure!(
        reduce.arg_min(on_x)? == least,
        "arg-min, expected {least:?}"
    );
    ensure!(
        reduce.arg_max(on_x)? == greatest,
        "arg-max, expected {greatest:?}"
    );
    ensure!(reduce.min(on_x)? == least.map(|i| x[i]), "min");
    ensure!(reduce.max(on_x)? == greatest.map(|i| x[i]), "max");
    let norm = reduce.norm_max(on_x)?.map(|norm| format!("{norm:?}"));
    let expected = largest.map(|i| {
        format!(
            "{:?}",
            T::magnitude_of(x[i].rank(gpu_kernels::reduce::Sought::Magnitude))
        )
    });
    ensure!(
        norm == expected,
        "norm_max is {norm:?}, expected {expected:?}"
    );
    Ok(())
}

fn refuses_lengths<T: Number>(device: &Device) -> Result<()> {
    let (three, four) = (device.zeros::<T>(3)?, device.zeros::<T>(4)?);
    let mut reduce = Reducer::new(device)?;
    let refused = reduce.dot(&three, &four);
    let is_length = matches!(
        refused,
        Err(OpError::Length {
            expected: 3,
            found: 4,
            ..
        })
    );
    ensure!(is_length, "{refused:?}");
    if !device.is_cpu() {
        let elsewhere = Device::cpu().zeros::<T>(3)?;
        let refused = reduce.sum(&elsewhere);
        ensure!(
            matches!(refused, Err(OpError::OtherDevice { .. })),
            "{refused:?}"
        );
    }
    Ok(())
}
