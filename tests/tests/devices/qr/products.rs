//! Q, Qᵀ, explicit Q, least squares, and R of tall matrices.

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::Dtype;
use warpfuse::ops::Number;
use warpfuse::ops::qr::{
    Batch, LeastSquares, Order, Piece, Qr, Side, Status, TallQr, TriangleForm,
};
use warpfuse::reference::qr as reference;
use warpfuse_tests::Subset;
use warpfuse_tests::tolerance::unit_roundoff;

use super::families::Kind;
use super::{Exact, factors};
use crate::entries::number;
use crate::suite::{Suite, Test};

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    for (i, (rows, cols)) in PRODUCTS.into_iter().enumerate() {
        // The many take longest: for every second shape.
        let sides = &SIDES[..SIDES.len() - i % 2];
        suite.add_in_both(
            |dtype| Test::new(format!("qr/products-{rows}x{cols}/{dtype}")),
            move |device| products::<f32>(device, (rows, cols), sides),
            move |device| products::<f64>(device, (rows, cols), sides),
        );
    }
    for (rows, cols) in [
        (5, 5),
        (8, 8),
        (16, 16),
        (31, 8),
        (20, 7),
        (32, 32),
        (50, 34),
        (200, 3),
        (90, 64),
        (100, 32),
    ] {
        suite.add_in_both(
            |dtype| Test::new(format!("qr/least-squares-{rows}x{cols}/{dtype}")),
            move |device| solved::<f32>(device, (rows, cols)),
            move |device| solved::<f64>(device, (rows, cols)),
        );
    }
    for (rows, cols) in [(1, 1), (3, 7), (100, 32), (513, 5), (1_300, 12)] {
        add_tall(suite, (rows, cols), |test| test);
    }
    // Three triangles of the CPU's, which reduces 1,024 rows at a time; a GPU's blocks have more.
    add_tall(suite, (2_051, 32), |test| test.within(Subset::Full));
    add_tall(suite, (20_011, 32), |test| {
        test.within(Subset::Full).of_entries()
    });
}

fn add_tall(suite: &mut Suite, shape: (usize, usize), limited: fn(Test) -> Test) {
    let name = |dtype: Dtype| format!("qr/tall-{}x{}/{dtype}", shape.0, shape.1);
    let test = |dtype| limited(Test::new(name(dtype)));
    suite.add(test(Dtype::F32), move |device| tall::<f32>(device, shape));
    suite.add(test(Dtype::F64), move |device| tall::<f64>(device, shape));
}

/// Matrices whose factors are multiplied: of lanes, and of panels.
const PRODUCTS: [(usize, usize); 8] = [
    (4, 4),
    (16, 9),
    (32, 32),
    (20, 31),
    (40, 40),
    (30, 50),
    (130, 20),
    (70, 33),
];

/// What they are multiplied by: one column, a few, more than a block has.
const SIDES: [(usize, Order); 3] = [
    (1, Order::ColumnMajor),
    (5, Order::RowMajor),
    (70, Order::ColumnMajor),
];

const KINDS: [Kind; 3] = [Kind::Random, Kind::Graded, Kind::Clustered];

/// Matrices of [`KINDS`] and their factors.
fn factored<T: Number>(
    device: &Device,
    (rows, cols): (usize, usize),
    form: TriangleForm,
) -> Result<(Vec<Vec<T>>, Qr<T>)> {
    let drawn = KINDS.iter().zip(50..);
    let a: Vec<Vec<T>> = drawn
        .map(|(kind, seed)| kind.draw((rows, cols), seed))
        .collect();
    let mut qr = Qr::new(device, Batch::column_major(rows, cols, KINDS.len()), form)?;
    qr.factor(&device.upload(&a.concat())?)?;
    Ok((a, qr))
}

/// Each kind of product against V and T in f64.
fn products<T: Number>(
    device: &Device,
    (rows, cols): (usize, usize),
    sides: &[(usize, Order)],
) -> Result<()> {
    let (_, whole) = factored::<T>(device, (rows, cols), TriangleForm::Whole)?;
    let (_, qr) = factored::<T>(device, (rows, cols), TriangleForm::Panels)?;
    let truth = factors(&whole)?;
    let bound = 100.0 * (rows + cols) as f64 * 2.0 * unit_roundoff(T::DTYPE);
    for &(sides, order) in sides {
        let batch = match order {
            Order::ColumnMajor => Batch::column_major(rows, sides, KINDS.len()),
            Order::RowMajor => Batch::row_major(rows, sides, KINDS.len()),
        };
        let c: Vec<T> = Kind::Random.draw((rows, sides * KINDS.len()), 9);
        for side in [Side::Q, Side::QTransposed] {
            let mut on_device = device.upload(&c)?;
            qr.apply(side, &mut on_device, &batch)?;
            let found = on_device.to_vec()?;
            for (i, factors) in truth.iter().enumerate() {
                let (before, after) = (columns(&c, &batch, i), columns(&found, &batch, i));
                let exact = factors.apply(&before, side == Side::QTransposed);
                close(&after, &exact, rows, bound)
                    .with_context(|| format!("{side:?}, {order:?}, matrix {i}"))?;
            }
        }
    }
    let least = rows.min(cols);
    let batch = Batch::column_major(rows, least, KINDS.len());
    let mut q = device.upload(&vec![number::<T>(f64::NAN); rows * least * KINDS.len()])?;
    qr.explicit_q(&mut q, &batch)?;
    let found = q.to_vec()?;
    for (i, factors) in truth.iter().enumerate() {
        let mut identity = vec![0.0; rows * least];
        (0..least).for_each(|k| identity[k * rows + k] = 1.0);
        let exact = factors.apply(&identity, false);
        close(&columns(&found, &batch, i), &exact, rows, bound)
            .with_context(|| format!("Q of matrix {i}"))?;
    }
    Ok(())
}

/// Matrix `i` of a batch, column-major, in f64.
fn columns<T: Number>(all: &[T], batch: &Batch, i: usize) -> Vec<f64> {
    let element = |col: usize, row: usize| {
        let at = match batch.order {
            Order::ColumnMajor => col * batch.ld + row,
            Order::RowMajor => row * batch.ld + col,
        };
        all[i * batch.stride + at].to_f64_exact()
    };
    let rows = |col: usize| (0..batch.rows).map(move |row| (col, row));
    let all = (0..batch.cols).flat_map(rows);
    all.map(|(col, row)| element(col, row)).collect()
}

/// Column by column, against the norm of the exact one.
fn close(found: &[f64], exact: &[f64], rows: usize, bound: f64) -> Result<()> {
    for (col, (found, exact)) in found.chunks(rows).zip(exact.chunks(rows)).enumerate() {
        let norm = exact.iter().map(|x| x * x).sum::<f64>().sqrt();
        let error: f64 = found.iter().zip(exact).map(|(a, b)| (a - b).powi(2)).sum();
        let error = error.sqrt();
        ensure!(
            error <= bound * norm,
            "column {col} is wrong by {error} of {}",
            bound * norm
        );
    }
    Ok(())
}

/// Aᵀ(A·x − c) is 0 but for rounding: backward stable.
fn solved<T: Number>(device: &Device, (rows, cols): (usize, usize)) -> Result<()> {
    let (a, qr) = factored::<T>(device, (rows, cols), TriangleForm::Panels)?;
    let batch = Batch::column_major(rows, 3, KINDS.len());
    let c: Vec<T> = Kind::Random.draw((rows, 3 * KINDS.len()), 21);
    let mut x = device.upload(&c)?;
    qr.solve(&mut x, &batch)?;
    let x = x.to_vec()?;
    is_least::<T>(&a, (&c, &x), &batch)?;
    let batch = Batch::column_major(rows, 1, KINDS.len());
    let c: Vec<T> = Kind::Random.draw((rows, KINDS.len()), 22);
    let mut x = device.upload(&c)?;
    let mut least = LeastSquares::new(device, Batch::column_major(rows, cols, KINDS.len()), 1)?;
    least.solve(&device.upload(&a.concat())?, &mut x, &batch)?;
    ensure!(least.statuses()? == [Status::FINE; KINDS.len()]);
    is_least::<T>(&a, (&c, &x.to_vec()?), &batch).context("nothing kept")
}

/// Of each matrix and each of its right-hand sides.
pub(super) fn is_least<T: Number>(a: &[Vec<T>], (c, x): (&[T], &[T]), batch: &Batch) -> Result<()> {
    let rows = batch.rows;
    let cols = a[0].len() / rows;
    for (i, a) in a.iter().enumerate() {
        let a: Vec<f64> = a.iter().map(|v| v.to_f64_exact()).collect();
        let (sides, solutions) = (columns(c, batch, i), columns(x, batch, i));
        for (c, x) in sides.chunks(rows).zip(solutions.chunks(rows)) {
            normal_equations::<T>(&a, c, &x[..cols]).with_context(|| format!("matrix {i}"))?;
        }
    }
    Ok(())
}

fn normal_equations<T: Number>(a: &[f64], c: &[f64], x: &[f64]) -> Result<()> {
    let (rows, cols) = (c.len(), x.len());
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut residual: Vec<f64> = c.to_vec();
    for (column, x) in a.chunks(rows).zip(x) {
        residual
            .iter_mut()
            .zip(column)
            .for_each(|(r, a)| *r -= a * x);
    }
    let norm = |v: &[f64]| dot(v, v).sqrt();
    let of_a = a.chunks(rows).map(norm).fold(0.0, f64::max) * (cols as f64).sqrt();
    let scale = of_a * (of_a * norm(x) + norm(c));
    let bound = 20.0 * (rows + cols) as f64 * 2.0 * unit_roundoff(T::DTYPE) * scale;
    for (j, column) in a.chunks(rows).enumerate() {
        let of_column = dot(column, &residual).abs();
        ensure!(of_column <= bound, "column {j}: {of_column} of {bound}");
    }
    Ok(())
}

/// RᵀR = AᵀA to rounding, and the signs of no consequence.
fn tall<T: Number>(device: &Device, (rows, cols): (usize, usize)) -> Result<()> {
    let a: Vec<T> = Kind::Graded.draw((rows, cols), 77);
    let exact = {
        let wide: Vec<f64> = a.iter().map(|x| x.to_f64_exact()).collect();
        reference::factor(&wide, rows, cols).r()
    };
    for order in [Order::ColumnMajor, Order::RowMajor] {
        let (ld, offset) = match order {
            Order::ColumnMajor => (rows + 1, 8),
            Order::RowMajor => (cols + 3, 8),
        };
        let piece = Piece {
            rows,
            cols,
            offset,
            order,
            ld,
        };
        let mut all = vec![number::<T>(f64::NAN); offset + ld * rows.max(cols)];
        for col in 0..cols {
            for row in 0..rows {
                let at = match order {
                    Order::ColumnMajor => col * ld + row,
                    Order::RowMajor => row * ld + col,
                };
                all[offset + at] = a[col * rows + row];
            }
        }
        let mut tall = TallQr::new(device, piece)?;
        tall.factor(&device.upload(&all)?)?;
        ensure!(!tall.status()?.not_finite);
        let r = tall.r()?;
        let least = rows.min(cols);
        for col in 0..cols {
            let norm: f64 = (0..least).map(|row| exact[col * least + row].powi(2)).sum();
            // A row of R may have the other sign; R depends on A with the condition of its leading columns, which for
            // uniform numbers of this many rows is small.
            let bound = 400.0
                * (cols as f64)
                * 2.0
                * unit_roundoff(T::DTYPE)
                * norm.sqrt()
                * condition(rows, cols);
            for row in 0..least {
                let (found, exact) = (
                    r[[row, col]].to_f64_exact().abs(),
                    exact[col * least + row].abs(),
                );
                ensure!(
                    (found - exact).abs() <= bound,
                    "R({row}, {col}) is {found}, not {exact} ± {bound}"
                );
            }
        }
    }
    Ok(())
}

/// A bound on the condition of uniform numbers, scaled column by column: small where there are twice as many rows as
/// columns, otherwise as the squared number of columns.
fn condition(rows: usize, cols: usize) -> f64 {
    if rows >= 2 * cols {
        6.0
    } else {
        100.0 * (cols * cols) as f64
    }
}
