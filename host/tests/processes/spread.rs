//! Solvers' vectors of which each process keeps a share: this program again in several processes, as members of a group.

use std::process::Command;

use warpfuse::device::Device;
use warpfuse::device::group::Group;
use warpfuse::learning::{
    Estimator, Family, FitOptions, Glm, Labels, LogisticRegression, Ridge, Solver, Targets,
};
use warpfuse::matrix::{Features, csr_from_parts};
use warpfuse::ops::{MatrixOptions, Vectors};
use warpfuse::plan::fused::Summation;

use crate::mpirun::in_processes;

/// Whether this process is to be a member instead of running tests.
pub const MEMBER: &str = "WARPFUSE_TEST_MEMBER";

const ROWS: usize = 120;
/// Vectors of several pieces.
const COLS: usize = 9_000;

fn value(i: usize) -> f64 {
    ((i * 37 + 11) % 53) as f64 / 53.0 - 0.4
}

/// Four entries a row.
fn rows(own: std::ops::Range<usize>) -> Features<f64> {
    let columns = |i: usize| [i % 3, 5 + i * 29, 4_000 + i * 17, COLS - 1 - i % 7];
    let indices: Vec<u32> = own.clone().flat_map(columns).map(|j| j as u32).collect();
    let values = own
        .clone()
        .flat_map(|i| (0..4).map(move |k| value(4 * i + k)));
    let offsets = (0..=own.len()).map(|i| 4 * i as u64).collect();
    let x = csr_from_parts((own.len(), COLS), offsets, indices, values.collect());
    Features::Sparse(x.expect("rows"))
}

fn estimators() -> [Estimator; 3] {
    let poisson = Glm::params().family(Family::Poisson).alpha(0.1);
    [
        Ridge::params().solver(Solver::ConjugateGradient).into(),
        LogisticRegression::params().solver(Solver::NewtonCg).into(),
        poisson.solver(Solver::NewtonCg).into(),
    ]
}

/// Digests of models, one a line.
fn fits(group: &Group) -> String {
    let (rank, size) = (group.rank(), group.size());
    // The first process has none where there are several.
    let first = |rank: usize| rank.saturating_sub(1) * ROWS / (size - 1).max(1);
    let own = match size {
        1 => 0..ROWS,
        _ => first(rank)..first(rank + 1),
    };
    let labels = Labels::Numbers((0..ROWS).map(|i| (i * 7 % 5 % 2) as f64).collect());
    let numbers: Vec<f64> = (0..ROWS).map(|i| 0.5 + value(i).abs()).collect();
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        vectors: Vectors::Spread,
        ..MatrixOptions::default()
    };
    let fit = |estimator: Estimator| {
        let targets = match estimator.is_classifier() {
            true => Targets::Labels(&labels),
            false => Targets::Numbers(&numbers),
        };
        let device = Device::cpu_of(group);
        let estimator = estimator.matrix_options(options);
        let model = estimator.fit_with(&device, rows(own.clone()), targets, FitOptions::default());
        let model = model.expect("a fit");
        let all = [model.coef().concat(), model.intercept().to_vec()].concat();
        let digest = all.iter().fold(0_u64, |digest, x| {
            (digest ^ x.to_bits()).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{digest:016x} after {} iterations\n", model.report().n_iter)
    };
    estimators().map(fit).concat()
}

/// What a process does that is a member: the first one prints.
pub fn member() {
    let group = Group::from_environment().expect("a group");
    let found = fits(&group);
    if group.is_first() {
        print!("{found}");
    }
}

pub fn spread_vectors_have_the_bits_of_one_process() {
    let expected = fits(&Group::alone());
    assert_eq!(expected.lines().count(), 3);
    let own = std::env::current_exe().expect("this program");
    for processes in 1..=4 {
        let mut command = Command::new("mpirun");
        in_processes(&mut command, processes, &[(MEMBER, "1")]).arg(&own);
        let output = command.output().expect("mpirun runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{processes} processes: {said}");
        let found = String::from_utf8_lossy(&output.stdout);
        assert_eq!(found, expected, "{processes} processes");
    }
}
