//! Convolutions as users call them, and every strategy that suits the shape.

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::Element;
use warpfuse::ops::OpError;
use warpfuse::ops::conv1d::{
    Conv1dNumber, Conv1dShape, Conv1dStrategy, Padding, conv1d, conv1d_views, conv1d_with,
};
use warpfuse::reference::conv1d as reference;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::tolerance::{Truth, growth, unit_roundoff};

use super::suite::{self, Suite, Test};

/// Length and taps: around packs, windows of 8 and 16, tiles of 128, 512, 1,024 and 2,048 outputs.
const SIZES: [(usize, usize); 23] = [
    (0, 3),
    (1, 1),
    (1, 5),
    (5, 9),
    (31, 2),
    (33, 3),
    (255, 7),
    (257, 8),
    (1_023, 9),
    (1_030, 15),
    (2_049, 16),
    (2_063, 17),
    (4_099, 33),
    (500, 64),
    (600, 65),
    (3_001, 12),
    (3_000, 64),
    (4_200, 65),
    (5_000, 1_000),
    (9_001, 1_024),
    // Outputs that fill tiles of strips, of which the first begins earlier.
    (768, 4),
    (1_536, 6),
    (2_560, 2),
];

const PADDINGS: [Padding; 3] = [Padding::Valid, Padding::Same, Padding::Causal];

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    add_type::<f32>(suite);
    add_type::<f64>(suite);
    suite.add(Test::new("conv1d/refuses"), refuses);
    suite.add(Test::new("conv1d/views"), views);
    suite.add(Test::new("conv1d/not_finite"), not_finite);
}

fn add_type<T: Conv1dNumber>(suite: &mut Suite) {
    for (len, taps) in SIZES {
        for padding in PADDINGS {
            let shape = Conv1dShape {
                padding,
                ..Conv1dShape::single(len, taps)
            };
            add_shape::<T>(suite, shape);
        }
    }
    for (stride, dilation) in [(1, 2), (2, 1), (3, 5), (4, 1), (17, 3), (1, 300)] {
        for padding in PADDINGS {
            let shape = Conv1dShape {
                stride,
                dilation,
                padding,
                ..Conv1dShape::single(1_300, 6)
            };
            add_shape::<T>(suite, shape);
        }
    }
    for (in_channels, out_channels, groups) in [(3, 1, 1), (1, 4, 1), (4, 6, 2), (5, 5, 5)] {
        for (len, stride) in [(301, 1), (302, 2)] {
            let shape = Conv1dShape {
                in_channels,
                out_channels,
                groups,
                stride,
                padding: Padding::Same,
                ..Conv1dShape::single(len, 10)
            };
            add_shape::<T>(suite, shape);
        }
    }
}

fn add_shape<T: Conv1dNumber>(suite: &mut Suite, shape: Conv1dShape) {
    let Conv1dShape {
        len,
        taps,
        in_channels,
        out_channels,
        groups,
        stride,
        dilation,
        padding,
    } = shape;
    let subset = if len * taps > 40_000 {
        Subset::Full
    } else {
        Subset::Small
    };
    let name = format!(
        "conv1d/{len}x{taps}-{padding:?}-s{stride}-d{dilation}-{in_channels}to{out_channels}by{groups}/{}",
        T::DTYPE
    );
    suite.add(Test::new(name).within(subset), move |device| {
        run::<T>(device, &shape)
    });
}

fn draw<T: Conv1dNumber>(len: usize, seed: u64) -> Vec<T> {
    let random = &mut Random::new(seed);
    let mut number = || <T as Element>::from_f64(random.signed());
    (0..len).map(|_| number()).collect()
}

fn truth<T: Conv1dNumber>(shape: &Conv1dShape, x: &[T], filters: &[T]) -> Truth {
    let body = reference::Conv1d {
        len: shape.len,
        out_len: shape.out_len(),
        out_channels: shape.out_channels,
        in_per_group: shape.in_per_group(),
        out_per_group: shape.out_per_group(),
        taps: shape.taps,
        stride: shape.stride,
        dilation: shape.dilation,
        before: shape.before(),
    };
    let (values, magnitudes) = reference::convolve(&body, x, filters);
    let terms = shape.taps * shape.in_per_group();
    let relative = growth(terms + 1, unit_roundoff(T::DTYPE));
    let bounds = magnitudes.iter().map(|m| relative * m).collect();
    Truth { values, bounds }
}

fn run<T: Conv1dNumber>(device: &Device, shape: &Conv1dShape) -> Result<()> {
    let x = draw::<T>(shape.in_channels * shape.len, shape.len as u64);
    let filters = draw::<T>(shape.filter_elements(), shape.taps as u64);
    let truth = truth(shape, &x, &filters);
    let (on_x, on_filters) = (device.upload(&x)?, device.upload(&filters)?);
    let poison = vec![<T as Element>::from_f64(f64::NAN); truth.values.len()];
    let mut out = device.upload(&poison)?;
    conv1d(shape, &on_x, &on_filters, &mut out)?;
    let best = out.to_vec()?;
    suite::check(device, "conv1d", &best, &truth)?;
    let limits = device.limits().map_or(0, |limits| limits.shared_per_block);
    for strategy in Conv1dStrategy::ALL {
        if device.is_cpu() || !strategy.suits(shape, T::SIZE, limits.into()) {
            continue;
        }
        out.copy_from_slice(&poison)?;
        conv1d_with(strategy, shape, &on_x, &on_filters, &mut out)?;
        ensure!(out.to_vec()? == best, "{strategy:?} gives other bits");
    }
    let cpu = Device::cpu();
    let (on_x, on_filters) = (cpu.upload(&x)?, cpu.upload(&filters)?);
    let mut of_cpu = cpu.upload(&poison)?;
    conv1d(shape, &on_x, &on_filters, &mut of_cpu).context("on the CPU")?;
    ensure!(of_cpu.to_vec()? == best, "other bits than the CPU's");
    Ok(())
}

fn refuses(device: &Device) -> Result<()> {
    let (x, filter) = (device.zeros::<f32>(10)?, device.zeros::<f32>(3)?);
    let mut out = device.zeros(8)?;
    let good = Conv1dShape::single(10, 3);
    conv1d(&good, &x, &filter, &mut out)?;
    let mut refused = |shape| conv1d(&shape, &x, &filter, &mut out).err();
    let zero = refused(Conv1dShape { stride: 0, ..good });
    ensure!(matches!(zero, Some(OpError::Conv1d(_))), "{zero:?}");
    let long = refused(Conv1dShape { len: 11, ..good });
    ensure!(
        matches!(long, Some(OpError::Length { expected: 11, .. })),
        "{long:?}"
    );
    let same = refused(Conv1dShape {
        padding: Padding::Same,
        ..good
    });
    ensure!(
        matches!(same, Some(OpError::Length { expected: 10, .. })),
        "{same:?}"
    );
    let dilated = Conv1dShape {
        dilation: 2,
        ..good
    };
    let mut six = device.zeros(6)?;
    let window = conv1d_with(Conv1dStrategy::Window8, &dilated, &x, &filter, &mut six);
    ensure!(
        matches!(window, Err(OpError::Strategy { .. })),
        "{window:?}"
    );
    Ok(())
}

fn views(device: &Device) -> Result<()> {
    let x = ndarray::Array2::from_shape_fn((40, 2), |(i, c)| (i * (c + 1)) as f64);
    let filters = ndarray::Array3::from_shape_fn((3, 2, 4), |(o, c, k)| (o + c) as f64 - k as f64);
    let like = Conv1dShape::single(0, 1);
    let found = conv1d_views(device, &like, x.t(), filters.view())?;
    ensure!(found.dim() == (3, 37), "{:?}", found.dim());
    let term = |o: usize, i: usize, c: usize, k: usize| filters[(o, c, k)] * x[(i + k, c)];
    for ((o, i), found) in found.indexed_iter() {
        let truth: f64 = (0..8).map(|ck| term(o, i, ck / 4, ck % 4)).sum();
        ensure!(
            *found == truth,
            "out[{o}][{i}] is {found}, expected {truth}"
        );
    }
    let wrong = conv1d_views(device, &like, x.view(), filters.view());
    ensure!(matches!(wrong, Err(OpError::Length { .. })), "{wrong:?}");
    Ok(())
}

/// A NaN and an infinity stay where their taps reach.
fn not_finite(device: &Device) -> Result<()> {
    let mut x = vec![1.0_f32; 3_000];
    (x[100], x[2_500]) = (f32::NAN, f32::INFINITY);
    let on_x = device.upload(&x)?;
    let filter = device.upload(&[1.0; 9])?;
    let shape = Conv1dShape::single(x.len(), 9);
    let mut out = device.zeros(shape.out_len())?;
    conv1d(&shape, &on_x, &filter, &mut out)?;
    for (i, found) in out.to_vec()?.into_iter().enumerate() {
        let expected = match i {
            92..=100 => found.is_nan(),
            2_492..=2_500 => found == f32::INFINITY,
            _ => found == 9.0,
        };
        ensure!(expected, "out[{i}] is {found}");
    }
    Ok(())
}
