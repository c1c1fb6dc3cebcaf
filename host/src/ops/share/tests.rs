//! Products and objectives of rows that one to four members share, against those of one process.

mod slices;
mod spread;

use std::fmt::Debug;
use std::ops::Deref;

use ndarray::Array2;

use crate::device::group::{GroupError, run_threads};
use crate::device::{Buffer, Device, EmulatorOptions};
use crate::matrix::{Features, csr_from_parts};
use crate::ops::many::RowWeights;
use crate::ops::objective::{
    Evaluation, Intercept, Loss, ObjectiveOut, ObjectiveSums, Softmax, SoftmaxOut,
};
use crate::ops::{ManyTerms, Matrix, MatrixOptions, Number, OpError, Terms};
use crate::plan::fused::Summation;

const ROWS: usize = 523;

/// How rows are shared out: even, uneven, and with members that have none.
const SHARES: [&[usize]; 7] = [
    &[ROWS],
    &[0, ROWS],
    &[261, 262],
    &[1, 522],
    &[500, 20, 3],
    &[100, 0, 300, 123],
    &[0, 200, 323, 0],
];

/// Numbers of very different sizes, so that the order of a sum shows; about one in seven is 0.
fn number(i: usize) -> f64 {
    let mantissa = ((17 * i + 5) % 101) as f64 / 64.0 - 0.75;
    match i % 7 {
        3 => 0.0,
        5 => 1e3 * mantissa,
        _ => mantissa,
    }
}

fn vector<T: Number>(len: usize, seed: usize) -> Vec<T> {
    let of = |i| <T as crate::cpu::Scalar>::narrow(number(7 * i + seed));
    (0..len).map(of).collect()
}

fn dense<T: Number>(cols: usize) -> Features<T> {
    let all = vector::<T>(ROWS * cols, 3);
    Features::Dense(Array2::from_shape_vec((ROWS, cols), all).expect("rows of columns"))
}

/// Rows of 0 to 8 entries.
fn sparse<T: Number>(cols: usize) -> Features<T> {
    let (mut offsets, mut indices) = (vec![0], Vec::new());
    for row in 0..ROWS {
        let count = (row * 5 % 9).min(cols);
        let mut own: Vec<u32> = (0..count)
            .map(|k| ((row * 13 + k * (cols / 9).max(1)) % cols) as u32)
            .collect();
        own.sort_unstable();
        own.dedup();
        indices.extend(own);
        offsets.push(indices.len() as u64);
    }
    let values = vector(indices.len(), 11);
    Features::Sparse(csr_from_parts((ROWS, cols), offsets, indices, values).expect("rows"))
}

fn options(summation: Summation) -> MatrixOptions {
    MatrixOptions {
        summation,
        ..MatrixOptions::default()
    }
}

/// What `ask` finds of X as a whole, and for each of the shares what every member finds.
fn each<T: Number, R: Send + Deref>(
    x: &Features<T>,
    summation: Summation,
    ask: impl Fn(&Matrix<T>) -> Result<R, OpError> + Sync,
    mut judge: impl FnMut(&R::Target, R, &[usize]),
) {
    let device = Device::cpu();
    let whole = Matrix::with_options(&device, x.clone(), options(summation)).expect("a matrix");
    let expected = ask(&whole).expect("an answer");
    for shares in SHARES {
        for found in found_by(shares, &device, (x, summation), &ask) {
            judge(&expected, found, shares);
        }
    }
}

/// Shares that begin where kernels can read vectors, and some that do not.
const OF_GPUS: [&[usize]; 3] = [&[256, 267], &[261, 262], &[100, 0, 300, 123]];

/// [`each`] of emulated GPUs, against the CPU.
fn each_emulated<T: Number, R: Send + Deref>(
    x: &Features<T>,
    summation: Summation,
    ask: impl Fn(&Matrix<T>) -> Result<R, OpError> + Sync,
    mut judge: impl FnMut(&R::Target, R, &[usize]),
) {
    let device = Device::cpu();
    let whole = Matrix::with_options(&device, x.clone(), options(summation)).expect("a matrix");
    let expected = ask(&whole).expect("an answer");
    for shares in OF_GPUS {
        let emulator = Device::small_emulator(EmulatorOptions::default());
        for found in found_by(shares, &emulator, (x, summation), &ask) {
            judge(&expected, found, shares);
        }
    }
}

/// What each member finds, on a device like `kind`.
fn found_by<T: Number, R: Send>(
    shares: &[usize],
    kind: &Device,
    (x, summation): (&Features<T>, Summation),
    ask: &(impl Fn(&Matrix<T>) -> Result<R, OpError> + Sync),
) -> Vec<R> {
    let found = run_threads(shares.len(), |group| {
        let first: usize = shares[..group.rank()].iter().sum();
        let own = x.select_rows(first..first + shares[group.rank()]);
        let device = match kind {
            Device::Emulator(_) => {
                Device::small_emulator(EmulatorOptions::schedule(group.rank() as u64))
            }
            other => other.clone(),
        };
        let device = device.in_group(&group)?;
        let x = Matrix::with_options(&device, own, options(summation))?;
        assert_eq!(x.rows(), ROWS);
        assert_eq!(x.own_rows(), first..first + shares[group.rank()]);
        ask(&x)
    });
    let each = found.into_iter();
    each.map(|found| found.expect("an answer")).collect()
}

/// All products with all terms, one side and three.
fn products<T: Number>(x: &Matrix<T>) -> Result<Vec<Vec<T>>, OpError> {
    let (device, m, n) = (x.device().clone(), x.rows(), x.cols());
    let up = |len, seed| device.upload(&vector::<T>(len, seed));
    let (alpha, beta) = (vector::<T>(1, 1)[0], vector::<T>(1, 2)[0]);
    let (v, s) = (up(m, 5)?, up(1, 4)?);
    let mut found = Vec::new();
    for k in [1, 3] {
        let (y, p, shift) = (up(n * k, 8)?, up(m * k, 9)?, up(k, 4)?);
        let (tall, wide, entries) = (up(m * k, 6)?, up(n * k, 7)?, up(m * k, 2)?);
        let full = |z| ManyTerms {
            alpha,
            weights: Some(RowWeights::OfRows(&v)),
            shift: Some(&shift),
            addend: Some((beta, z)),
        };
        let weighed = ManyTerms {
            weights: Some(RowWeights::OfEntries(&entries)),
            ..ManyTerms::default()
        };
        for (wide, tall) in [
            (ManyTerms::default(), ManyTerms::default()),
            (full(&wide), full(&tall)),
            (weighed, weighed),
        ] {
            let (mut w, mut q) = (device.zeros(n * k)?, device.zeros(m * k)?);
            x.fused_many(k, &y, &wide, &mut w)?;
            found.push(w.to_vec()?);
            x.transposed_many(k, &p, &wide, &mut w)?;
            found.push(w.to_vec()?);
            x.forward_many(k, &y, &tall, &mut q)?;
            found.push(q.to_vec()?);
        }
    }
    let terms = Terms {
        weights: Some(&v),
        shift: Some(&s),
        ..Terms::default()
    };
    let mut w = device.zeros(n)?;
    x.fused(&up(n, 8)?, &terms, &mut w)?;
    found.push(w.to_vec()?);
    Ok(found)
}

/// Sums, gradient and a Hessian product.
fn objective<T: Number>(x: &Matrix<T>) -> Result<Vec<Vec<f64>>, OpError> {
    let (device, m, n) = (x.device().clone(), x.rows(), x.cols());
    let small = |len, seed| {
        let scale = |t: T| <T as crate::cpu::Scalar>::narrow(Into::<f64>::into(t) / 4096.0);
        let all: Vec<T> = vector::<T>(len, seed).into_iter().map(scale).collect();
        device.upload(&all)
    };
    let labels: Vec<T> = (0..m)
        .map(|i| <T as crate::cpu::Scalar>::narrow((i * i % 3 % 2) as f64))
        .collect();
    let ones: Vec<T> = (0..m)
        .map(|i| <T as crate::cpu::Scalar>::narrow(1.0 + (i % 4) as f64))
        .collect();
    let (target, weights) = (device.upload(&labels)?, device.upload(&ones)?);
    let (y, c, offset) = (small(n, 2)?, small(1, 3)?, small(m, 5)?);
    let evaluation = Evaluation {
        weights: Some(&weights),
        offset: Some(&offset),
        intercept: Intercept::Given(&c),
        ..Evaluation::new(Loss::Logistic, &target)
    };
    let wide = |of: &Buffer<T>| -> Result<Vec<f64>, OpError> {
        Ok(of.to_vec()?.into_iter().map(Into::into).collect())
    };
    let (mut sums, mut gradient) = (device.zeros(ObjectiveSums::LEN)?, device.zeros(n)?);
    let mut curvature = device.zeros(m)?;
    let out = ObjectiveOut {
        curvature: Some(&mut curvature),
        ..ObjectiveOut::new(&mut sums, &mut gradient)
    };
    x.objective(&evaluation, &y, out)?;
    let mut found = vec![sums.to_vec()?, wide(&gradient)?];
    let out = ObjectiveOut::new(&mut sums, &mut gradient);
    x.hessian_product(&curvature, Intercept::Given(&c), &y, out)?;
    found.extend([sums.to_vec()?, wide(&gradient)?]);
    Ok(found)
}

/// Sums, gradient and a Hessian product of three classes.
fn softmax<T: Number>(x: &Matrix<T>) -> Result<Vec<Vec<f64>>, OpError> {
    let (device, m, n, k) = (x.device().clone(), x.rows(), x.cols(), 3);
    let of = |i: usize| <T as crate::cpu::Scalar>::narrow((i * i % 7 % 3) as f64);
    let target = device.upload(&(0..m).map(of).collect::<Vec<T>>())?;
    let small = |t: T| <T as crate::cpu::Scalar>::narrow(Into::<f64>::into(t) / 4096.0);
    let y: Vec<T> = vector::<T>(n * k, 2).into_iter().map(small).collect();
    let y = device.upload(&y)?;
    let (mut sums, mut gradient) = (device.zeros(1 + k)?, device.zeros(n * k)?);
    let mut probabilities = device.zeros(m * k)?;
    let rows = Softmax {
        classes: k,
        weights: None,
        constants: None,
    };
    let wide = |of: &Buffer<T>| -> Result<Vec<f64>, OpError> {
        Ok(of.to_vec()?.into_iter().map(Into::into).collect())
    };
    let out = SoftmaxOut {
        sums: &mut sums,
        gradient: &mut gradient,
    };
    x.softmax_objective(&rows, &target, &y, out, Some(&mut probabilities))?;
    let mut found = vec![sums.to_vec()?, wide(&gradient)?];
    let out = SoftmaxOut {
        sums: &mut sums,
        gradient: &mut gradient,
    };
    x.softmax_product(&rows, &probabilities, &y, out, None)?;
    found.extend([sums.to_vec()?, wide(&gradient)?]);
    Ok(found)
}

fn same_bits<T: Debug + PartialEq>(expected: &[Vec<T>], found: Vec<Vec<T>>, shares: &[usize]) {
    assert_eq!(expected, &found, "{shares:?}");
}

/// Equal up to the rounding of sums of `ROWS` terms in f64, some more to T: their absolute values are some thousand times
/// those of the results at most.
fn near<T: Number>(expected: &[Vec<T>], found: Vec<Vec<T>>, shares: &[usize]) {
    let unit = if T::SIZE == 4 {
        f64::from(f32::EPSILON)
    } else {
        f64::EPSILON
    };
    for (case, (expected, found)) in expected.iter().zip(found).enumerate() {
        let wide = |v: &[T]| -> Vec<f64> { v.iter().map(|x| (*x).into()).collect() };
        let (expected, found) = (wide(expected), wide(&found));
        let largest = expected.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
        for (e, f) in expected.iter().zip(&found) {
            let error = (e - f).abs();
            assert!(
                error <= 64.0 * unit * largest,
                "{e} {f}, case {case}, {shares:?}"
            );
        }
    }
}

fn in_both_types(x32: &Features<f32>, x64: &Features<f64>) {
    each(x32, Summation::Reproducible, products, same_bits);
    each(x64, Summation::Reproducible, products, same_bits);
    each(x32, Summation::Free, products, near);
    each(x64, Summation::Free, products, near);
}

/// One product.
fn fused<T: Number>(x: &Matrix<T>) -> Result<Vec<Vec<T>>, OpError> {
    let device = x.device();
    let mut w = device.zeros(x.cols())?;
    let y = device.upload(&vector::<T>(x.cols(), 8))?;
    x.fused(&y, &Terms::default(), &mut w)?;
    Ok(vec![w.to_vec()?])
}

#[test]
fn products_of_dense_rows() {
    // Rows of threads, of tiles and of warps.
    for cols in [1, 2, 3, 28, 130] {
        in_both_types(&dense(cols), &dense(cols));
    }
    // In a ring, and those that are read twice.
    for cols in [1100, 9000] {
        each(
            &dense::<f32>(cols),
            Summation::Reproducible,
            fused,
            same_bits,
        );
    }
}

#[test]
fn products_of_sparse_rows() {
    for cols in [1, 40, 5000] {
        in_both_types(&sparse(cols), &sparse(cols));
    }
}

#[test]
fn special_values_have_the_same_place() {
    let mut x = dense::<f64>(5);
    let mut y = sparse::<f32>(40);
    if let (Features::Dense(x), Features::Sparse(y)) = (&mut x, &mut y) {
        x[[300, 2]] = f64::INFINITY;
        let values: Vec<f32> = y
            .data()
            .iter()
            .enumerate()
            .map(|(i, v)| if i == 700 { f32::INFINITY } else { *v })
            .collect();
        *y = csr_from_parts(
            (ROWS, 40),
            y.proper_indptr().to_vec(),
            y.indices().to_vec(),
            values,
        )
        .expect("rows");
    }
    // A NaN is one, of whatever bits.
    fn same<T: Number>(expected: &[Vec<T>], found: Vec<Vec<T>>, shares: &[usize]) {
        for (e, f) in expected.iter().flatten().zip(found.iter().flatten()) {
            let (e, f): (f64, f64) = ((*e).into(), (*f).into());
            assert!(e == f || e.is_nan() && f.is_nan(), "{e} {f} {shares:?}");
        }
    }
    each(&x, Summation::Reproducible, products, same);
    each(&y, Summation::Reproducible, products, same);
}

#[test]
fn objectives() {
    for cols in [3, 40] {
        each(
            &dense::<f32>(cols),
            Summation::Reproducible,
            objective,
            same_bits,
        );
        each(
            &sparse::<f64>(cols),
            Summation::Reproducible,
            objective,
            same_bits,
        );
        each(&dense::<f64>(cols), Summation::Free, objective, near);
        each(&sparse::<f64>(cols), Summation::Free, objective, near);
        each(&dense::<f64>(cols), Summation::Free, softmax, near);
        each(&sparse::<f64>(cols), Summation::Free, softmax, near);
    }
}

/// What f32 kernels computed, read as f64.
fn near_in_f32(expected: &[Vec<f64>], found: Vec<Vec<f64>>, shares: &[usize]) {
    near_by(f64::from(f32::EPSILON), expected, found, shares);
}

/// Equal up to the rounding of sums of `ROWS` terms in T, in any order.
fn near_in_any_order<T: Number>(expected: &[Vec<T>], found: Vec<Vec<T>>, shares: &[usize]) {
    let unit = if T::SIZE == 4 {
        f64::from(f32::EPSILON)
    } else {
        f64::EPSILON
    };
    near_by(unit, expected, found, shares);
}

fn near_by<T: Number>(unit: f64, expected: &[Vec<T>], found: Vec<Vec<T>>, shares: &[usize]) {
    for (case, (expected, found)) in expected.iter().zip(found).enumerate() {
        let largest = expected
            .iter()
            .fold(0.0_f64, |a, b| a.max(Into::<f64>::into(*b).abs()));
        for (e, f) in expected.iter().zip(&found) {
            let (e, f): (f64, f64) = ((*e).into(), (*f).into());
            assert!(
                (e - f).abs() <= 64.0 * ROWS as f64 * unit * largest,
                "{e} {f}, case {case}, {shares:?}"
            );
        }
    }
}

#[test]
fn emulated_gpus_multiply_together() {
    let (dense, sparse) = (dense::<f32>(28), sparse::<f64>(40));
    each_emulated(&dense, Summation::Reproducible, products, same_bits);
    each_emulated(&sparse, Summation::Reproducible, products, same_bits);
    each_emulated(&dense, Summation::Free, products, near_in_any_order);
    each_emulated(&sparse, Summation::Free, products, near_in_any_order);
}

#[test]
fn emulated_gpus_evaluate_objectives_together() {
    let (dense, sparse) = (dense::<f64>(28), sparse::<f32>(40));
    each_emulated(&dense, Summation::Reproducible, objective, same_bits);
    each_emulated(&sparse, Summation::Reproducible, objective, same_bits);
    each_emulated(&dense, Summation::Free, objective, near_in_any_order);
    each_emulated(&sparse, Summation::Free, objective, near_in_f32);
    each_emulated(&dense, Summation::Free, softmax, near_in_any_order);
    each_emulated(&sparse, Summation::Free, softmax, near_in_f32);
}

#[test]
fn rows_of_other_columns_are_refused_by_all() {
    let found = run_threads(3, |group| {
        let cols = if group.rank() == 1 { 4 } else { 5 };
        let own = Features::Dense(Array2::<f64>::zeros((2, cols)));
        Matrix::new(&Device::cpu_of(&group), own).map(|x| x.cols())
    });
    for found in found {
        let Err(OpError::Shares {
            rank: 1,
            expected,
            found,
        }) = found
        else {
            panic!("{found:?}");
        };
        assert_eq!(
            (&expected[..], &found[..]),
            ("dense, 5 columns of f64", "dense, 4 columns of f64")
        );
    }
}

#[test]
fn a_member_that_is_gone_ends_a_product_with_an_error() {
    let found = run_threads(2, |group| {
        let own = Features::Dense(Array2::<f64>::ones((2, 3)));
        let device = Device::cpu_of(&group);
        let x = Matrix::new(&device, own)?;
        if group.rank() == 1 {
            group.fail("no more memory");
            return Ok(());
        }
        let mut w = device.zeros(3)?;
        x.transposed(&device.upload(&[1.0; 4])?, &Terms::default(), &mut w)
    });
    let failed = GroupError::Failed {
        rank: 1,
        message: "no more memory".to_owned(),
    };
    assert_eq!(found, [Err(OpError::Group(failed)), Ok(())]);
}
