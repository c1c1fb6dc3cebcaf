//! Rows, columns and segments.

use anyhow::{Context, Result, ensure};
use gpu_kernels::reduce::Accumulator;
use warpfuse::device::buffer::RowLayout;
use warpfuse::device::{Buffer, Device};
use warpfuse::ops::OpError;
use warpfuse::ops::reduce::{Parts, Reducer, Sought};
use warpfuse::reference::reduce::{self as reference, Extreme};
use warpfuse::reference::rounding::UNIT_F64;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::tolerance::growth;

use super::super::suite::{Suite, Test};
use super::{Number, check_moments, close, doubles, draw, is_exact, value};

/// Rows, columns, pitch: around tiles, warps, threads of a column, chunks of rows, long rows.
const SHAPES: [(usize, usize, usize); 15] = [
    (0, 5, 5),
    (5, 0, 3),
    (1, 1, 1),
    (3, 31, 31),
    (7, 33, 40),
    (65, 1, 1),
    (64, 4, 5),
    (129, 28, 28),
    (40, 30, 32),
    (37, 63, 63),
    (50, 13, 14),
    (2_050, 3, 3),
    (2, 1_025, 1_030),
    (9_000, 28, 28),
    (70, 2_000, 2_001),
];

/// Adds every shape, and segments.
pub fn add<T: Number>(suite: &mut Suite) {
    for (rows, cols, pitch) in SHAPES {
        let subset = if rows * cols > 10_000 {
            Subset::Full
        } else {
            Subset::Small
        };
        let name = format!("reduce/rows/{rows}x{cols}-{pitch}/{}", T::NAME);
        suite.add(Test::new(name).within(subset), move |device| {
            run_matrix::<T>(device, RowLayout { rows, cols, pitch })
        });
    }
    for (name, longest, count) in [("short", 70, 60), ("long", 3_000, 5), ("none", 1, 0)] {
        let name = format!("reduce/segments/{name}/{}", T::NAME);
        suite.add(Test::new(name), move |device| {
            run_segments::<T>(device, longest, count)
        });
    }
    let name = format!("reduce/refuses_parts/{}", T::NAME);
    suite.add(Test::new(name), refuses::<T>);
}

fn run_matrix<T: Number>(device: &Device, layout: RowLayout) -> Result<()> {
    let RowLayout { rows, cols, pitch } = layout;
    let len = if rows == 0 {
        0
    } else {
        (rows - 1) * pitch + cols
    };
    let x = draw::<T>(len, (rows * 31 + cols) as u64);
    let row = |i: usize| x[i * pitch..][..cols].to_vec();
    let column = |j: usize| (0..rows).map(|i| x[i * pitch + j]).collect::<Vec<T>>();
    let by_rows: Vec<Vec<T>> = (0..rows).map(row).collect();
    let by_columns: Vec<Vec<T>> = (0..cols).map(column).collect();
    check(device, &x, Parts::Rows(layout), &by_rows).context("rows")?;
    check(device, &x, Parts::Columns(layout), &by_columns).context("columns")
}

fn run_segments<T: Number>(device: &Device, longest: usize, count: usize) -> Result<()> {
    let random = &mut Random::new(5);
    let mut offsets = vec![2_u64];
    for s in 0..count {
        // Every fourth is empty.
        let len = if s % 4 == 3 {
            0
        } else {
            1 + (random.unit() * longest as f64) as u64
        };
        offsets.push(offsets[s] + len);
    }
    let x = draw::<T>(offsets[count] as usize + 3, 6);
    let pairs = offsets.windows(2);
    let segments: Vec<Vec<T>> = pairs
        .map(|s| x[s[0] as usize..s[1] as usize].to_vec())
        .collect();
    check(device, &x, Parts::Segments(&offsets), &segments)
}

/// All results against f64 loops over `expected`, and their bits against those of the CPU.
fn check<T: Number>(device: &Device, x: &[T], parts: Parts<'_>, expected: &[Vec<T>]) -> Result<()> {
    let on_x = device.upload(x)?;
    let found = results(device, &on_x, parts, expected)?;
    let cpu = Device::cpu();
    let of_cpu = results(&cpu, &cpu.upload(x)?, parts, expected).context("on the CPU")?;
    ensure!(found == of_cpu, "other bits than the CPU's");
    Ok(())
}

fn results<T: Number>(
    device: &Device,
    x: &Buffer<T>,
    parts: Parts<'_>,
    expected: &[Vec<T>],
) -> Result<Vec<u64>> {
    let mut reduce = Reducer::new(device)?;
    let sums: Vec<f64> = reduce.sums(x, parts)?.into_iter().map(value).collect();
    let norms1: Vec<f64> = reduce.norms1(x, parts)?.into_iter().map(value).collect();
    let norms2 = reduce.norms2(x, parts)?;
    let moments = reduce.moments_of(x, parts)?;
    let counts = reduce.counts(x, parts)?;
    let lengths = [
        sums.len(),
        norms1.len(),
        norms2.len(),
        moments.len(),
        counts.len(),
    ];
    ensure!(lengths == [expected.len(); 5], "{lengths:?} results");
    for (i, part) in expected.iter().enumerate() {
        let dx = doubles(part);
        let relative = growth(part.len() + 4, UNIT_F64);
        let exact = if is_exact::<T>() { 0.0 } else { relative };
        let sum = reference::sum(dx.iter().copied());
        close("sum", sums[i], sum.value, exact * sum.magnitude)?;
        close("norm1", norms1[i], sum.magnitude, exact * sum.magnitude)?;
        let norm = reference::sum(dx.iter().map(|x| x * x)).value.sqrt();
        close("norm2", norms2[i], norm, relative * norm)?;
        check_moments(moments[i], &dx)?;
        let nonzero = dx.iter().filter(|x| **x != 0.0).count() as u64;
        ensure!(counts[i] == nonzero, "count");
    }
    check_extremes(&mut reduce, x, parts, expected)?;
    let mut into = device.upload(&vec![T::Sum::ONE; expected.len()])?;
    reduce.sums_into(x, parts, &mut into)?;
    let into: Vec<f64> = into.to_vec()?.into_iter().map(value).collect();
    ensure!(into == sums, "sums_into: {into:?}, expected {sums:?}");
    let means = moments.iter().flat_map(|m| [m.mean, m.deviations]);
    let all = sums.into_iter().chain(norms1).chain(norms2).chain(means);
    Ok(all.map(f64::to_bits).collect())
}

fn check_extremes<T: Number>(
    reduce: &mut Reducer,
    x: &Buffer<T>,
    parts: Parts<'_>,
    expected: &[Vec<T>],
) -> Result<()> {
    for (sought, extreme) in [
        (Sought::Least, Extreme::Least),
        (Sought::Greatest, Extreme::Greatest),
    ] {
        let found = reduce.extremes(sought, x, parts)?;
        for (part, found) in expected.iter().zip(&found) {
            let position = reference::position(&doubles(part), extreme);
            let truth = position.map(|i| (part[i], i));
            ensure!(*found == truth, "{sought:?}: {found:?}, expected {truth:?}");
        }
    }
    let norms = reduce.norms_max(x, parts)?;
    for (part, norm) in expected.iter().zip(&norms) {
        let largest = reference::position(&doubles(part), Extreme::Magnitude);
        let truth = largest.map(|i| T::magnitude_of(part[i].rank(Sought::Magnitude)));
        ensure!(*norm == truth, "norm_max: {norm:?}, expected {truth:?}");
    }
    Ok(())
}

fn refuses<T: Number>(device: &Device) -> Result<()> {
    let x = device.zeros::<T>(10)?;
    let mut reduce = Reducer::new(device)?;
    let mut refused = |parts| reduce.sums(&x, parts).err();
    let descend = refused(Parts::Segments(&[0, 5, 4]));
    ensure!(
        matches!(descend, Some(OpError::Offsets { segment: 1, .. })),
        "{descend:?}"
    );
    let beyond = refused(Parts::Segments(&[0, 11]));
    ensure!(
        matches!(beyond, Some(OpError::Length { expected: 11, .. })),
        "{beyond:?}"
    );
    let (rows, cols) = (3, 4);
    let beyond = refused(Parts::Rows(RowLayout {
        rows,
        cols,
        pitch: 4,
    }));
    ensure!(
        matches!(beyond, Some(OpError::Length { expected: 12, .. })),
        "{beyond:?}"
    );
    let overlap = refused(Parts::Columns(RowLayout {
        rows,
        cols,
        pitch: 3,
    }));
    ensure!(
        matches!(overlap, Some(OpError::Length { expected: 4, .. })),
        "{overlap:?}"
    );
    let huge = refused(Parts::Rows(RowLayout {
        rows: usize::MAX,
        cols,
        pitch: 4,
    }));
    ensure!(matches!(huge, Some(OpError::Length { .. })), "{huge:?}");
    Ok(())
}
