//! Extremes, refusals and properties of layers.

use anyhow::{Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::filters::{FilterError, FilterValue, SparseFilters, magnitude};
use warpfuse::ops::OpError;
use warpfuse::ops::sparse_conv::{
    ArrayConv, Bf16, ConvElement, ConvShape, ConvShapeError, ConvStrategy, ConvSum, F16, I8, I16,
    I16Wide, Layer, MapLayout, Maps, Pool, SparseConv, SparseConvError,
};
use warpfuse::reference::sparse_conv as reference;
use warpfuse_tests::generate::Random;

use super::{Case, draw, filters_of, inputs_of, padded};
use crate::suite::{Suite, Test};

/// Adds them.
pub fn add(suite: &mut Suite) {
    suite.add(Test::new("sparse_conv/extremes"), extremes);
    suite.add(Test::new("sparse_conv/overflow"), overflow);
    suite.add(Test::new("sparse_conv/packed_limits"), packed_limits);
    suite.add(Test::new("sparse_conv/linear"), linear);
    suite.add(Test::new("sparse_conv/shift"), shift);
    suite.add(Test::new("sparse_conv/identity"), identity);
    suite.add(Test::new("sparse_conv/not_finite"), not_finite);
    suite.add(Test::new("sparse_conv/rounding/f16"), rounding::<F16>);
    suite.add(Test::new("sparse_conv/rounding/bf16"), rounding::<Bf16>);
    suite.add(Test::new("sparse_conv/refuses"), refuses);
    suite.add(Test::new("sparse_conv/arrays"), arrays);
}

/// Runs a layer by every strategy that suits.
fn by_all<E: ConvElement>(
    device: &Device,
    shape: &ConvShape,
    filters: &SparseFilters<E::Value>,
    x: &[E::Value],
) -> Result<Vec<Vec<E::Sum>>> {
    let on_x = Maps::<E>::upload(device, x)?;
    let mut results = Vec::new();
    let all = ConvStrategy::ALL.into_iter().map(Some);
    for strategy in std::iter::once(None).chain(all.filter(|_| !device.is_cpu())) {
        let layer = Layer {
            strategy,
            ..Layer::default()
        };
        let conv = match SparseConv::<E>::new(device, shape, filters, layer) {
            Err(SparseConvError::Strategy { .. }) => continue,
            other => other?,
        };
        let mut out = device.zeros(shape.results())?;
        conv.run(&on_x, &mut out)?;
        results.push(out.to_vec()?);
    }
    Ok(results)
}

/// The least and the largest numbers, and sums at their bound.
fn extremes(device: &Device) -> Result<()> {
    let shape = padded(2, [3, 3], 1, 1);
    let ends = [i16::MIN, i16::MAX];
    for w in ends {
        let filters = SparseFilters::from_dense(shape.filter_shape(), &[w, -1])?;
        for x in ends {
            let expected = i32::from(w) * i32::from(x) - i32::from(x);
            for found in by_all::<I16>(device, &shape, &filters, &[x; 18])? {
                ensure!(found == [expected; 9], "{w} · {x}: {found:?}");
            }
        }
    }
    // 65,535 · 32,768 is 32,768 below 2³¹.
    let filters = SparseFilters::from_dense(shape.filter_shape(), &[i16::MAX, i16::MIN])?;
    for found in by_all::<I16>(device, &shape, &filters, &[i16::MIN; 18])? {
        ensure!(found == [32_768; 9], "{found:?}");
    }
    let both = SparseFilters::from_dense(shape.filter_shape(), &[i16::MIN; 2])?;
    for found in by_all::<I16Wide>(device, &shape, &both, &[i16::MIN; 18])? {
        ensure!(found == [1 << 31; 9], "{found:?}");
    }
    let bytes = SparseFilters::from_dense(shape.filter_shape(), &[i8::MIN, i8::MAX])?;
    for found in by_all::<I8>(device, &shape, &bytes, &[i8::MIN; 18])? {
        ensure!(found == [128; 9], "{found:?}");
    }
    Ok(())
}

/// 32-bit sums that could overflow are refused at 2³¹, and not before.
fn overflow(device: &Device) -> Result<()> {
    let shape = ConvShape::new(1, [1, 1], 2, [1, 2]);
    let shape = ConvShape {
        size: [1, 2],
        ..shape
    };
    let layer = |last: i16, bias: i32| {
        let filters = SparseFilters::from_dense(shape.filter_shape(), &[0, 1, i16::MAX, last])?;
        let bias = [0, bias];
        let layer = Layer {
            bias: Some(&bias),
            ..Layer::default()
        };
        SparseConv::<I16>::new(device, &shape, &filters, layer).map(drop)
    };
    // (32,767 + 32,768) · 32,768 + 32,767 = 2³¹ − 1.
    ensure!(layer(i16::MIN, 32_767).is_ok(), "the bound itself is exact");
    let refused = layer(i16::MIN, 32_768);
    ensure!(
        matches!(
            refused,
            Err(SparseConvError::Overflow {
                filter: 1,
                bits: 32,
                ..
            })
        ),
        "{refused:?}"
    );
    Ok(())
}

/// What a packed word cannot hold is an error that says where it is.
fn packed_limits(device: &Device) -> Result<()> {
    if device.is_cpu() {
        return Ok(());
    }
    let shape = ConvShape::new(1, [1, 1], 1, [1, 1]);
    let layer = Layer {
        strategy: Some(ConvStrategy::Packed),
        ..Layer::default()
    };
    let filters = SparseFilters::from_dense(shape.filter_shape(), &[0.1_f64])?;
    let refused = SparseConv::<f64>::new(device, &shape, &filters, layer).map(drop);
    ensure!(
        matches!(
            refused,
            Err(SparseConvError::Filters(FilterError::DoesNotFit { .. }))
        ),
        "{refused:?}"
    );
    Ok(())
}

const PROPERTY: Case = Case {
    name: "property",
    shape: ConvShape {
        padding: [1; 2],
        batch: 1,
        channels: 6,
        size: [6, 11],
        filters: 5,
        kernel: [3; 2],
        stride: [1; 2],
        dilation: [1; 2],
        groups: 1,
        layout: MapLayout::Nchw,
        pool: None,
    },
    density: 0.3,
    rectify: false,
};

/// Linear in the filters: those of a sum give the sum.
fn linear(device: &Device) -> Result<()> {
    let shape = &PROPERTY.shape;
    let x = inputs_of::<I16Wide>(shape);
    let of = |seed| draw::<i16>(shape.filter_shape().weights(), seed, 9_000.0);
    let (one, two) = (of(1), of(2));
    let both: Vec<i16> = one.iter().zip(&two).map(|(a, b)| a + b).collect();
    let run = |weights: &[i16]| {
        let filters = SparseFilters::from_dense(shape.filter_shape(), weights)?;
        by_all::<I16Wide>(device, shape, &filters, &x)
    };
    let (one, two, both) = (run(&one)?, run(&two)?, run(&both)?);
    for ((one, two), both) in one.iter().zip(&two).zip(&both) {
        let sum: Vec<i64> = one.iter().zip(two).map(|(a, b)| a + b).collect();
        ensure!(sum == *both, "not linear");
    }
    Ok(())
}

/// An input that is moved by a column moves the result, but for the columns at the edge.
fn shift(device: &Device) -> Result<()> {
    let shape = &PROPERTY.shape;
    let [rows, cols] = shape.size;
    let (filters, x) = (filters_of::<I16>(&PROPERTY)?, inputs_of::<I16>(shape));
    let mut moved = vec![0; x.len()];
    for (from, to) in x.chunks(cols).zip(moved.chunks_mut(cols)) {
        to[1..].copy_from_slice(&from[..cols - 1]);
    }
    let (here, there) = (
        by_all::<I16>(device, shape, &filters, &x)?,
        by_all::<I16>(device, shape, &filters, &moved)?,
    );
    for (here, there) in here.iter().zip(&there) {
        for row in 0..rows * shape.filters {
            let (here, there) = (&here[row * cols..][..cols], &there[row * cols..][..cols]);
            ensure!(here[1..cols - 2] == there[2..cols - 1], "row {row}");
        }
    }
    Ok(())
}

/// Filters with a one in the middle of their own channel give the input.
fn identity(device: &Device) -> Result<()> {
    let shape = ConvShape {
        filters: 6,
        ..PROPERTY.shape
    };
    let mut weights = vec![0_i16; shape.filter_shape().weights()];
    for channel in 0..6 {
        weights[(channel * 6 + channel) * 9 + 4] = 1;
    }
    let filters = SparseFilters::from_dense(shape.filter_shape(), &weights)?;
    let x = inputs_of::<I16>(&shape);
    let expected: Vec<i32> = x.iter().map(|x| i32::from(*x)).collect();
    for found in by_all::<I16>(device, &shape, &filters, &x)? {
        ensure!(found == expected, "not the input");
    }
    Ok(())
}

/// A NaN stays where its taps reach, and wins every window.
fn not_finite(device: &Device) -> Result<()> {
    let shape = ConvShape {
        pool: Some(Pool::max(2)),
        ..ConvShape::new(1, [2, 8], 1, [1, 1])
    };
    let filters = SparseFilters::from_dense(shape.filter_shape(), &[2.0_f32])?;
    let mut x = [1.0_f32; 16];
    (x[3], x[12]) = (f32::NAN, f32::INFINITY);
    for found in by_all::<f32>(device, &shape, &filters, &x)? {
        ensure!(found[1].is_nan(), "{found:?}");
        ensure!(
            [found[0], found[2], found[3]] == [2.0, f32::INFINITY, 2.0],
            "{found:?}"
        );
    }
    Ok(())
}

/// Fractions of any sign and of 2⁻¹² to 1 in magnitude: sums that have to be rounded.
fn fractions<V: FilterValue>(len: usize, seed: u64) -> Vec<V> {
    let random = &mut Random::new(seed);
    let mut number = || {
        let exponent = (random.signed().abs() * 12.0).floor();
        V::from_f64(random.signed() * 2.0_f64.powf(-exponent))
    };
    (0..len).map(|_| number()).collect()
}

/// Sums of n products of halves are within 3n · 2⁻²³ · Σ |w · x| of the true ones, by every strategy: chains of n multiply-adds
/// are within n · 2⁻²⁴ of it. Of a tensor core's addition of k products to a sum each number may be cut at 2⁻²³ of the
/// largest, and so may the result: k + 2 times that, of which k is at least 1.
fn rounding<E: ConvElement>(device: &Device) -> Result<()> {
    let shape = padded(40, [7, 9], 35, 3);
    let weights = fractions::<E::Value>(shape.filter_shape().weights(), 5);
    let filters = magnitude(shape.filter_shape(), &weights, 0.3)?;
    let x = fractions::<E::Value>(shape.inputs(), 6);
    let layer = reference::Layer {
        batch: 1,
        in_per_group: shape.channels,
        size: shape.size,
        filters: shape.filters,
        out_per_group: shape.filters,
        kernel: shape.kernel,
        stride: shape.stride,
        padding: shape.padding,
        dilation: shape.dilation,
        out: shape.out(),
        rectify: false,
    };
    let [rows, cols] = shape.size;
    let input =
        |[_, channel, row, col]: [usize; 4]| x[(channel * rows + row) * cols + col].to_f64();
    let dense: Vec<f64> = filters.to_dense().iter().map(|w| w.to_f64()).collect();
    let (sums, magnitudes) = reference::convolve(&layer, input, &dense, &[]);
    for found in by_all::<E>(device, &shape, &filters, &x)? {
        for (i, found) in found.iter().enumerate() {
            let terms = filters.of_filter(i / (rows * cols)).count() as f64;
            let most = 3.0 * terms * 2.0_f64.powi(-23) * magnitudes[i];
            let error = (found.to_f64() - sums[i]).abs();
            ensure!(
                error <= most,
                "sum {i} is off by {error:e}, at most {most:e}"
            );
        }
    }
    Ok(())
}

fn refuses(device: &Device) -> Result<()> {
    let shape = padded(2, [4, 4], 2, 3);
    let filters = SparseFilters::from_dense(shape.filter_shape(), &[1.0_f32; 36])?;
    let new = |shape: &ConvShape| SparseConv::<f32>::new(device, shape, &filters, Layer::default());
    let other = new(&ConvShape {
        filters: 3,
        ..shape
    })
    .map(drop);
    ensure!(
        matches!(
            other,
            Err(SparseConvError::Shape(ConvShapeError::Filters { .. }))
        ),
        "{other:?}"
    );
    let conv = new(&shape)?;
    let short = Maps::<f32>::upload(device, &[0.0; 31])?;
    let mut out = device.zeros(32)?;
    let refused = conv.run(&short, &mut out);
    ensure!(
        matches!(refused, Err(OpError::Length { expected: 32, .. })),
        "{refused:?}"
    );
    let bias = [0.0; 3];
    let layer = Layer {
        bias: Some(&bias[..]),
        ..Layer::default()
    };
    ensure!(
        SparseConv::<f32>::new(device, &shape, &filters, layer).is_err(),
        "a long bias"
    );
    Ok(())
}

/// Between arrays of the host, in any number of parts, as between buffers.
fn arrays(device: &Device) -> Result<()> {
    for batch in [0, 1, 3, 5] {
        let shape = ConvShape {
            batch,
            pool: Some(Pool::max(2)),
            ..padded(3, [5, 6], 4, 3)
        };
        let filters = draw::<i16>(shape.filter_shape().weights(), 3, 90.0);
        let filters = SparseFilters::from_dense(shape.filter_shape(), &filters)?;
        let x = inputs_of::<I16>(&shape);
        let layer = Layer::default();
        let conv = SparseConv::<I16>::new(device, &shape, &filters, layer)?;
        let expected = conv.run_on_host_arrays(&x)?;
        for parts in [1, 2, 3, 9] {
            let mut arrays = ArrayConv::<I16>::in_parts(device, &shape, &filters, layer, parts)?;
            let name = format!("{batch} images in {parts} parts");
            ensure!(arrays.run()? == vec![0; expected.len()], "{name}: zeros");
            // Twice: the memory of parts is used again.
            ensure!(arrays.run_on(&x)? == expected, "{name}");
            ensure!(arrays.run_on(&x)? == expected, "{name}, again");
            ensure!(arrays.run_on(&[0]).is_err(), "{name}: one input");
        }
    }
    Ok(())
}
