//! Conjugate gradients whose vectors members keep a share of each, against one process.

use super::*;
use crate::ops::cg::{CgVectors, Stop};
use crate::ops::{Spread, Vectors};

/// More than one block takes through an iteration: ten pieces of 992 elements, the last of them shorter.
const LONG: usize = 9_601;
const ITERATIONS: usize = 4;

/// Rows of one to four members: even, uneven, and none.
const OF_ROWS: [&[usize]; 5] = [
    &[ROWS],
    &[256, 267],
    &[0, ROWS],
    &[1, 300, 222],
    &[100, 0, 300, 123],
];

/// What some iterations for (XᵀX + I/8)·w = Xᵀt, columns centred and preconditioned, make of w, r, p and the scalars; all elements.
fn solved<T: Number>(x: &Matrix<T>) -> Result<Vec<Vec<f64>>, OpError> {
    let (device, n) = (x.device().clone(), x.cols());
    let vector = |seed| device.upload(&vector::<T>(n, seed));
    let inverse: Vec<T> = (0..n)
        .map(|j| {
            <T as crate::cpu::Scalar>::narrow(if j % 50 == 7 {
                0.0
            } else {
                1.0 / (1 + j % 3) as f64
            })
        })
        .collect();
    let spread = x.spread(n)?;
    let mut vectors = CgVectors::spread_over(
        spread.clone(),
        &device,
        vector(1)?,
        Some(device.upload(&inverse)?),
        Some(vector(2)?),
        Stop::at(1e-12),
    )?;
    vectors.restart(&vector(3)?, Stop::at(1e-12))?;
    for _ in 0..ITERATIONS {
        let shift = vectors
            .shift
            .as_ref()
            .map(|shift| shift.to_vec())
            .transpose()?;
        assert!(shift.is_some_and(|shift| shift.len() == 1));
        iterate(x, &mut vectors, spread.as_ref())?;
    }
    let of = |all: &Buffer<T>| -> Result<Vec<f64>, OpError> {
        Ok(all.to_vec()?.into_iter().map(Into::into).collect())
    };
    let mut theta = vector(4)?;
    vectors.add_to(&mut theta)?;
    let shift = vectors.shift.as_ref().expect("columns are centred");
    let mut found = vec![
        vectors.state().to_vec()?,
        of(shift)?,
        of(&vectors.p)?,
        of(&theta)?,
    ];
    found.push(of(&vectors.whole(&vectors.r)?)?);
    found.push(of(&vectors.into_solution()?)?);
    Ok(found)
}

fn iterate<T: Number>(
    x: &Matrix<T>,
    vectors: &mut CgVectors<T>,
    spread: Option<&Spread>,
) -> Result<(), OpError> {
    let eighth = <T as crate::cpu::Scalar>::narrow(0.125);
    let terms = Terms {
        shift: vectors.shift.as_ref(),
        addend: Some((eighth, &vectors.p)),
        ..Terms::default()
    };
    let (p, q) = (&vectors.p, &mut vectors.q);
    match spread {
        Some(spread) => x.in_shares(*spread.shares(), || x.fused(p, &terms, q))?,
        None => x.fused(p, &terms, q)?,
    }
    vectors.advance()
}

/// What each member finds, of shares of rows, where vectors are spread, and what one finds alone.
fn both<T: Number>(
    x: &Features<T>,
    summation: Summation,
    (device, shares): (&Device, &[usize]),
) -> (Vec<Vec<f64>>, Vec<Vec<Vec<f64>>>) {
    let alone = Matrix::with_options(&Device::cpu(), x.clone(), options(summation));
    let expected = solved(&alone.expect("a matrix")).expect("an answer");
    let options = MatrixOptions {
        vectors: Vectors::Spread,
        ..options(summation)
    };
    let found = run_threads(shares.len(), |group| {
        let first: usize = shares[..group.rank()].iter().sum();
        let own = x.select_rows(first..first + shares[group.rank()]);
        let x = Matrix::with_options(&device.in_group(&group)?, own, options)?;
        let spread = x.spread(LONG)?;
        assert_eq!(spread.is_some(), !group.is_alone());
        // Short ones are one piece.
        assert!(x.spread(8_192)?.is_none());
        if let Some(spread) = spread {
            let lengths = spread.shares().lengths();
            assert_eq!(lengths.iter().sum::<usize>(), LONG);
            assert!(
                lengths
                    .iter()
                    .rev()
                    .skip(1)
                    .all(|len| len % 992 == 0 && *len < LONG)
            );
        }
        solved(&x)
    });
    let found = found.into_iter().map(|found| found.expect("an answer"));
    (expected, found.collect())
}

#[test]
fn spread_solves_have_the_bits_of_one_process() {
    let (x, y) = (sparse::<f32>(LONG), sparse::<f64>(LONG));
    for shares in OF_ROWS {
        let of = |expected: Vec<Vec<f64>>, found: Vec<Vec<Vec<f64>>>| {
            found
                .into_iter()
                .for_each(|found| same_bits(&expected, found, shares));
        };
        let (expected, found) = both(&x, Summation::Reproducible, (&Device::cpu(), shares));
        of(expected, found);
        let (expected, found) = both(&y, Summation::Reproducible, (&Device::cpu(), shares));
        of(expected, found);
    }
}

#[test]
fn emulated_gpus_solve_with_spread_vectors() {
    let (x, y) = (sparse::<f32>(LONG), sparse::<f64>(LONG));
    let emulator = Device::small_emulator(EmulatorOptions::default());
    for shares in [&[256, 267][..], &[100, 0, 423]] {
        let (expected, found) = both(&x, Summation::Reproducible, (&emulator, shares));
        found
            .into_iter()
            .for_each(|found| same_bits(&expected, found, shares));
        let (expected, found) = both(&y, Summation::Free, (&emulator, shares));
        for found in found {
            near_in_any_order(&expected, found, shares);
        }
    }
}

#[test]
fn free_sums_of_shares_are_those_of_one_process() {
    let x = sparse::<f64>(LONG);
    for shares in OF_ROWS {
        let (expected, found) = both(&x, Summation::Free, (&Device::cpu(), shares));
        for found in found {
            near_in_any_order(&expected, found, shares);
        }
    }
}

/// A product leaves what is wanted of it, and all of it where nothing else is wanted.
#[test]
fn products_leave_a_share_while_that_is_wanted() {
    let x = sparse::<f64>(LONG);
    let whole = Matrix::new(&Device::cpu(), x.clone()).expect("a matrix");
    let ask = |x: &Matrix<f64>| -> Result<Vec<f64>, OpError> {
        let y = x.device().upload(&vector::<f64>(LONG, 5))?;
        let mut w = x.device().upload(&vec![f64::NAN; LONG])?;
        x.fused(&y, &Terms::default(), &mut w)?;
        Ok(w.to_vec()?)
    };
    let expected = ask(&whole).expect("a product");
    for kind in [
        Device::cpu(),
        Device::small_emulator(EmulatorOptions::default()),
    ] {
        let found = run_threads(2, |group| {
            let own = x.select_rows([0..256, 256..ROWS][group.rank()].clone());
            let x = Matrix::new(&kind.in_group(&group)?, own)?;
            let spread = Spread::over(&group, LONG).expect("it is long");
            let part = x.in_shares(*spread.shares(), || ask(&x))?;
            Ok::<_, OpError>((spread.own(), part, ask(&x)?))
        });
        for found in found {
            let (own, part, all) = found.expect("products");
            let other = if own.start == 0 { own.end } else { 0 };
            // What the other member has was not added up.
            assert_ne!(part[other..other + 900], expected[other..other + 900]);
            let of = |all: &[f64]| vec![all.to_vec()];
            near_in_any_order(&of(&expected[own.clone()]), of(&part[own]), &[256, 267]);
            near_in_any_order(&of(&expected), of(&all), &[256, 267]);
        }
    }
}
