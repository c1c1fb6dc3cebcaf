//! Newton steps by the stored entries of a sparse X.

use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::choice::Direct;
use super::super::design::{HostDesign, Reads};
use super::super::{Problem, Solved, Start, minimise};
use super::{Data, LOGISTIC, near, spec};
use crate::learning::cg::Convergence;
use crate::learning::solver::Limits;
use crate::learning::spec::SampleLoss;
use crate::learning::{Columns, RowMoments};
use crate::matrix::{Features, csr_from_parts};
use crate::ops::objective::Loss;

const HINGE: SampleLoss = SampleLoss::Single(Loss::SquaredHinge);

/// Rows of up to eight entries, weights that differ and of which some are 0, columns that are centred and scaled.
fn sparse(rows: usize, cols: usize, loss: SampleLoss, l2: f64) -> Data {
    let mut next = Xoshiro256PlusPlus::seed_from_u64(5);
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut targets = Vec::new();
    for _ in 0..rows {
        let mut own: Vec<u32> = (0..8).map(|_| next.random_range(0..cols as u32)).collect();
        own.sort_unstable();
        own.dedup();
        let mut score = 0.3 * next.random::<f64>();
        for j in own {
            let x = next.random::<f64>();
            score += x * f64::from(j % 5) - x * 1.9;
            indices.push(j);
            values.push(x);
        }
        offsets.push(indices.len() as u64);
        let sign = if score > 0.0 { 1.0 } else { -1.0 };
        targets.push(if loss == HINGE {
            sign
        } else {
            0.5 + 0.5 * sign
        });
    }
    let x = csr_from_parts((rows, cols), offsets, indices, values).expect("a matrix");
    let features = Features::Sparse(x);
    let raw: Vec<f64> = (0..rows).map(|i| (i % 4) as f64).collect();
    let total: f64 = raw.iter().sum();
    Data {
        columns: Columns {
            means: Some(RowMoments::of_all(&features).columns.means(rows).into()),
            scales: Some((0..cols).map(|j| 1.0 + 0.01 * j as f64).collect()),
            intercept: true,
        },
        features,
        targets,
        weights: raw.iter().map(|v| v / total).collect(),
        spec: spec(loss, (0.0, l2)),
    }
}

fn solve(data: &Data, problem: &Problem<'_>, method: Direct) -> Solved {
    let limits = Limits {
        tolerance: 1e-10,
        max_iter: 100,
        quadratic: false,
    };
    let start = Start {
        theta: vec![0.0; data.features.cols() + 1],
        cold: None,
        found: None,
    };
    minimise(problem, method, start, &limits, &mut |_, _| {
        ControlFlow::Continue(())
    })
}

/// The minimum is that of a Hessian that is formed, held columns and offsets included.
#[test]
fn stored_entries_lead_where_the_hessian_does() {
    for (loss, l2) in [(HINGE, 1e-2), (HINGE, 1e-5), (LOGISTIC, 1e-3)] {
        let data = sparse(900, 60, loss, l2);
        let offset: Vec<f64> = (0..900).map(|i| 0.1 * (i as f64).sin()).collect();
        let of = |reads| {
            let mut problem = data.problem();
            problem.design = HostDesign::new(&data.features, &data.columns, reads);
            (problem.held[3], problem.offset) = (true, Some(&offset[..]));
            problem
        };
        let found = solve(&data, &of(Reads::Stored), Direct::Stored);
        let expected = solve(&data, &of(Reads::Many), Direct::Cholesky);
        let what = format!("{loss:?} {l2}");
        assert_eq!(found.convergence, Convergence::Converged, "{what}");
        assert_eq!(found.theta[3], 0.0, "{what}");
        assert!((found.objective - expected.objective).abs() <= 1e-13 * expected.objective.abs());
        near(&found.theta, &expected.theta, 1e-7);
        assert!(found.n_iter < 30, "{what}: {} iterations", found.n_iter);
    }
}

/// Of rows enough for several groups.
#[test]
fn the_number_of_threads_changes_no_bit_of_sparse_steps() {
    let data = sparse(40_000, 50, HINGE, 1e-4);
    let mut problem = data.problem();
    problem.design = HostDesign::new(&data.features, &data.columns, Reads::Stored);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let solved = pool
            .build()
            .expect("threads")
            .install(|| solve(&data, &problem, Direct::Stored));
        assert_eq!(solved.convergence, Convergence::Converged);
        solved
            .theta
            .into_iter()
            .map(f64::to_bits)
            .collect::<Vec<_>>()
    };
    assert_eq!(with(1), with(3));
}

/// A pass forth and back over several groups of rows is a product and its transposed one: groups are handed their own rows.
#[test]
fn groups_of_sparse_rows_are_handed_their_own_slopes() {
    let data = sparse(40_000, 50, LOGISTIC, 1e-4);
    let design = HostDesign::new(&data.features, &data.columns, Reads::Stored);
    for k in [1, 3] {
        let theta: Vec<f64> = (0..51 * k).map(|i| (i as f64).cos()).collect();
        let passed = design.forth_and_back((&theta, k), 1000, None, |_, of| {
            of.slopes.copy_from_slice(of.predictors);
            0.0
        });
        let predictors = design.predictors(&theta, k);
        near(&passed.predictors, &predictors, 1e-13);
        near(&passed.gradient, &design.transposed(&predictors, k), 1e-12);
    }
}
