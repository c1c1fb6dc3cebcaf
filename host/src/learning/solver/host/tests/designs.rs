//! All forms of X̃ are one matrix.

use super::super::design::{HostDesign, Reads};
use super::{near, random};
use crate::learning::Columns;
use crate::matrix::Features;

/// Sparse, dense, streamed and selected columns are one X̃.
fn means() -> Vec<f64> {
    (0..40).map(|j| 0.01 * f64::from(j)).collect()
}

#[test]
fn all_forms_of_a_design_agree() {
    let mut x = random(50, 40);
    x.mapv_inplace(|value| if value.abs() < 0.97 { 0.0 } else { value });
    let sparse = Features::from(sprs::CsMatI::<f64, u32, u64>::csr_from_dense(x.view(), 0.0));
    let columns = Columns {
        means: Some(means().into()),
        scales: Some((0..40).map(|j| 1.0 + 0.1 * j as f64).collect()),
        intercept: true,
    };
    let dense = Features::Dense(x);
    let (sparse, dense) = (
        HostDesign::new(&sparse, &columns, Reads::Many),
        HostDesign::new(&dense, &columns, Reads::Many),
    );
    let k = 3;
    let theta: Vec<f64> = (0..41 * k).map(|i| (i as f64).cos()).collect();
    near(
        &sparse.predictors(&theta, k),
        &dense.predictors(&theta, k),
        1e-13,
    );
    let slopes: Vec<f64> = (0..50 * k).map(|i| (i as f64).sin()).collect();
    near(
        &sparse.transposed(&slopes, k),
        &dense.transposed(&slopes, k),
        1e-13,
    );
    let some = [1, 7, 8, 39, 40];
    let gram = |design: &HostDesign<'_>| {
        let gram = design
            .select(&some)
            .grams(1, |_, i| 1.0 + i as f64)
            .swap_remove(0);
        (0..25).map(|i| gram[(i / 5, i % 5)]).collect::<Vec<f64>>()
    };
    near(&gram(&sparse), &gram(&dense), 1e-13);
}

/// X̃ that is written again for each pass is the one that is written once: a pass forth and back, and Gram matrices.
#[test]
fn reads_of_a_design_agree() {
    let x = random(2200, 40);
    let columns = Columns {
        means: Some(means().into()),
        scales: Some((0..40).map(|j| 1.0 + 0.1 * j as f64).collect()),
        intercept: true,
    };
    let (tall, wide) = (
        Features::Dense(x.clone()),
        Features::Dense(x.t().to_owned()),
    );
    let of = |reads: Reads| HostDesign::new(&tall, &columns, reads);
    let (few, many, k) = (of(Reads::Few), of(Reads::Many), 2);
    let theta: Vec<f64> = (0..41 * k).map(|i| (i as f64).cos()).collect();
    let thirds = |i: usize| (i % 3) as f64;
    let passed = few.forth_and_back((&theta, k), 1000, Some(&thirds), |rows, of| {
        for (i, row) in rows.zip(0..) {
            of.slopes[row * k..(row + 1) * k].fill((i as f64).sin());
            of.kept[row * k..(row + 1) * k].fill(i as f64);
        }
        of.predictors.iter().sum()
    });
    let predictors = many.predictors(&theta, k);
    near(&passed.predictors, &predictors, 1e-13);
    assert!((passed.loss - predictors.iter().sum::<f64>()).abs() < 1e-8);
    assert!(
        passed
            .kept
            .iter()
            .enumerate()
            .all(|(i, kept)| *kept == (i / k) as f64)
    );
    near(&passed.gradient, &many.transposed(&passed.slopes, k), 1e-11);
    let all = |gram: &faer::Mat<f64>| -> Vec<f64> {
        (0..41 * 41).map(|at| gram[(at / 41, at % 41)]).collect()
    };
    let expected = many.grams(1, |_, i| thirds(i)).swap_remove(0);
    near(
        &all(&passed.gram.expect("was requested")),
        &all(&expected),
        1e-12,
    );
    for factor in [|_, _| 0.5, |_, i| (i % 3) as f64] {
        let gram = |design: &HostDesign<'_>| design.grams(1, factor).swap_remove(0);
        let (few, many) = (gram(&few), gram(&many));
        let all = || (0..41 * 41).map(|at| (at / 41, at % 41));
        near(
            &all().map(|at| few[at]).collect::<Vec<f64>>(),
            &all().map(|at| many[at]).collect::<Vec<f64>>(),
            1e-12,
        );
    }
    let columns = Columns {
        means: None,
        scales: None,
        intercept: false,
    };
    let held: Vec<bool> = (0..2200).map(|j| j % 7 == 0).collect();
    let gram = |reads: Reads| HostDesign::new(&wide, &columns, reads).row_gram(2200, &held);
    let (few, many) = (gram(Reads::Few), gram(Reads::Many));
    let expected = |(a, b): (usize, usize)| -> f64 {
        let free = (0..2200).filter(|j| !held[*j]);
        free.map(|j| x[[j, a]] * x[[j, b]]).sum()
    };
    for at in (0..40).flat_map(|a| (0..=a).map(move |b| (a, b))) {
        assert!((few[at] - expected(at)).abs() < 1e-10, "{at:?}");
        assert!((many[at] - expected(at)).abs() < 1e-10, "{at:?}");
    }
}
