//! Split halves: rows and columns of any magnitudes, elements far below the largest of their row, infinities and NaN.

use anyhow::{Result, ensure};
use ndarray::{Array2, Axis};
use warpfuse::device::Device;
use warpfuse::matrix::Dtype;
use warpfuse::ops::matmul::{Choice, Factor, Layout, Op, matmul};
use warpfuse::plan::matmul::Arithmetic;
use warpfuse::reference::matmul as reference;
use warpfuse_tests::generate::Random;
use warpfuse_tests::tolerance::{Truth, growth, smallest_normal, unit_roundoff};

use super::super::suite::{self, Suite, Test};

const HALVES: Choice = Choice::With(Arithmetic::SplitF16);
/// m, n, k: several parts of k pack, and a tile is not whole.
const SIZE: (usize, usize, usize) = (21, 13, 550);
/// Binary exponents of rows of A, of which the first are subnormal, and of columns of B.
const OF_ROWS: [i32; 5] = [-140, -60, 0, 60, 110];
const OF_COLUMNS: [i32; 3] = [-60, -10, 8];
/// Every second element is so much smaller.
const GRADE: i32 = -30;

/// Adds the tests.
pub fn add(suite: &mut Suite) {
    suite.add(Test::new("matmul/halves/graded"), graded);
    suite.add(
        Test::new("matmul/halves/not-finite").of_entries(),
        not_finite,
    );
}

/// What splitting into scaled halves loses of the products of matrices of these magnitudes: 3 · 2⁻²² of each, and 2⁻³⁹ of the
/// largest magnitude of each row of A and column of B; both with a digit to spare for products of what is lost.
pub fn lost(a: &Array2<f64>, b: &Array2<f64>) -> Array2<f64> {
    let largest = |x: &Array2<f64>, axis| x.fold_axis(Axis(axis), 0.0, |m: &f64, x| m.max(*x));
    let (of_a, of_b) = (largest(a, 1), largest(b, 0));
    let (sum_a, sum_b) = (a.sum_axis(Axis(1)), b.sum_axis(Axis(0)));
    let absolute = f64::powi(2.0, -38);
    let mut lost = a.dot(b) * f64::powi(2.0, -20);
    for ((i, j), lost) in lost.indexed_iter_mut() {
        *lost += absolute * (of_a[i] * sum_b[j] + of_b[j] * sum_a[i]);
    }
    lost
}

fn draw(shape: (usize, usize), random: &mut Random) -> Array2<f32> {
    let mut x = Array2::from_shape_simple_fn(shape, || random.signed() as f32);
    for ((_, j), x) in x.indexed_iter_mut() {
        *x *= f32::powi(2.0, GRADE * (j as i32 % 2));
    }
    x
}

/// The product of A and the transposed B, with A stored as `op` says.
fn multiply(device: &Device, a: &Array2<f32>, b: &Array2<f32>, op: Op) -> Result<Vec<f32>> {
    let ((m, k), n) = (a.dim(), b.nrows());
    let (stored, rows, cols) = match op {
        Op::AsStored => (a.iter().copied().collect::<Vec<_>>(), m, k),
        Op::Transposed => (a.t().iter().copied().collect(), k, m),
    };
    let on_a = device.upload(&stored)?;
    let on_b = device.upload(&b.iter().copied().collect::<Vec<_>>())?;
    let left = Factor {
        op,
        ..Factor::new(&on_a, rows, cols)
    };
    let right = Factor {
        op: Op::Transposed,
        ..Factor::new(&on_b, n, k)
    };
    let mut c = device.zeros(m * n)?;
    matmul(
        1.0,
        &left,
        &right,
        0.0,
        (&mut c, Layout::dense(m, n)),
        HALVES,
    )?;
    Ok(c.to_vec()?)
}

fn graded(device: &Device) -> Result<()> {
    let (m, n, k) = SIZE;
    let random = &mut Random::new(17);
    let (mut a, mut b) = (draw((m, k), random), draw((n, k), random));
    let scale = |x: &mut Array2<f32>, exponents: &[i32]| {
        for (mut row, exponent) in x.outer_iter_mut().zip(exponents.iter().cycle()) {
            // Two factors, as one may be subnormal itself.
            let half = exponent / 2;
            row.mapv_inplace(|x| x * f32::powi(2.0, half) * f32::powi(2.0, exponent - half));
        }
    };
    scale(&mut a, &OF_ROWS);
    scale(&mut b, &OF_COLUMNS);
    let (wide_a, wide_b) = (a.mapv(f64::from), b.mapv(f64::from).reversed_axes());
    let zero = Array2::zeros((m, n));
    let exact = reference::product(1.0, wide_a.view(), wide_b.view(), 0.0, zero.view());
    let (of_a, of_b) = (wide_a.mapv(f64::abs), wide_b.mapv(f64::abs));
    let added = of_a.dot(&of_b) * growth(k + 3, unit_roundoff(Dtype::F32));
    // Small results underflow.
    let bounds = added + lost(&of_a, &of_b) + smallest_normal(Dtype::F32);
    let truth = Truth {
        values: exact.into_iter().collect(),
        bounds: bounds.into_iter().collect(),
    };
    for op in [Op::AsStored, Op::Transposed] {
        suite::check(device, "matmul", &multiply(device, &a, &b, op)?, &truth)?;
    }
    Ok(())
}

/// Rows of A and columns of B that become NaN, and others that do not.
fn not_finite(device: &Device) -> Result<()> {
    let (m, n, k) = (9, 7, 40);
    let random = &mut Random::new(18);
    let (mut a, mut b) = (draw((m, k), random), draw((n, k), random));
    a[(1, 39)] = f32::INFINITY;
    a[(4, 0)] = f32::NAN;
    b[(3, 17)] = f32::NEG_INFINITY;
    let found = multiply(device, &a, &b, Op::AsStored)?;
    for (at, found) in found.into_iter().enumerate() {
        let (row, column) = (at / n, at % n);
        let expected = [1, 4].contains(&row) || column == 3;
        ensure!(found.is_nan() == expected, "C({row}, {column}) is {found}");
    }
    Ok(())
}
