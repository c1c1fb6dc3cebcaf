//! Conjugate gradients over the rows of a sparse X.

use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::choice::Direct;
use super::super::{Start, minimise};
use super::{Data, SQUARED, near, random};
use crate::learning::cg::Convergence;
use crate::learning::solver::Limits;
use crate::learning::{Columns, RowMoments};
use crate::matrix::{Features, csr_from_parts};

/// Rows of few entries, weights that differ, a column that is held, an offset: the minimum over the rows is that over all
/// coefficients.
#[test]
fn sparse_ridges_are_solved_over_their_rows() {
    let dense = Data::new(random(60, 500), SQUARED, (0.0, 0.03));
    let mut next = Xoshiro256PlusPlus::seed_from_u64(8);
    let mut entries: Vec<Vec<(usize, f64)>> = vec![Vec::new(); 60];
    for row in &mut entries {
        let mut columns: Vec<usize> = (0..8).map(|_| next.random_range(0..400)).collect();
        columns.sort_unstable();
        columns.dedup();
        row.extend(columns.iter().map(|j| (*j, 1.0 + next.random::<f64>())));
    }
    let indptr = entries.iter().scan(0, |at, row| {
        *at += row.len() as u64;
        Some(*at)
    });
    let offsets: Vec<u64> = std::iter::once(0).chain(indptr).collect();
    let (indices, values): (Vec<u32>, Vec<f64>) = entries
        .iter()
        .flatten()
        .map(|(j, value)| (*j as u32, *value))
        .unzip();
    let x = csr_from_parts((60, 500), offsets, indices, values).expect("a matrix");
    let raw: Vec<f64> = (0..60).map(|i| 1.0 + (i % 5) as f64).collect();
    let total: f64 = raw.iter().sum();
    let features = Features::Sparse(x);
    let means = RowMoments::of_all(&features).columns.means(60);
    let data = Data {
        features,
        weights: raw.iter().map(|v| v / total).collect(),
        columns: Columns {
            means: Some(means.into()),
            scales: Some((0..500).map(|j| 1.0 + 0.01 * j as f64).collect()),
            intercept: true,
        },
        ..dense
    };
    let offset: Vec<f64> = (0..60).map(|i| 0.1 * i as f64).collect();
    let mut problem = data.problem();
    (problem.held[3], problem.offset) = (true, Some(&offset[..]));
    let solve = |method| {
        let start = Start {
            theta: vec![0.0; problem.len()],
            cold: None,
            found: None,
        };
        let limits = Limits {
            tolerance: 1e-11,
            max_iter: 500,
            quadratic: true,
        };
        minimise(&problem, method, start, &limits, &mut |_, _| {
            ControlFlow::Continue(())
        })
    };
    let (found, expected) = (solve(Direct::Dual), solve(Direct::Cholesky));
    assert_eq!(found.convergence, Convergence::Converged);
    assert!(found.n_iter > 5, "by conjugate gradients");
    near(&found.theta, &expected.theta, 1e-8);
    assert!((found.objective - expected.objective).abs() < 1e-12 * expected.objective);
}
