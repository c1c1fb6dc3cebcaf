//! Hubs, ranks and singular vectors of rows that several members share, against one process.

use std::cell::Cell;
use std::fmt::Debug;
use std::time::Duration;

use super::SHARES;
use crate::device::Device;
use crate::device::group::run_threads;
use crate::learning::{
    Checkpoint, CheckpointError, Dangling, FitError, Hits, PageRank, TruncatedSvd,
};
use crate::matrix::{Features, csr_from_parts};
use crate::ops::{MatrixOptions, Number, OpError, interruptible};
use crate::plan::fused::Summation;

const NODES: usize = 150;

/// A graph of which every seventh node has no edges.
fn graph<T: Number>() -> Features<T> {
    let ends = |i: usize| match i % 7 {
        0 => Vec::new(),
        _ => {
            let mut ends = vec![i * i % NODES, (3 * i + 1) % NODES, (i + 5) % NODES];
            ends.sort_unstable();
            ends.dedup();
            ends
        }
    };
    let mut offsets = vec![0];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for i in 0..NODES {
        for j in ends(i) {
            indices.push(j as u32);
            values.push(<T as crate::cpu::Scalar>::narrow(1.0 + (i % 3) as f64));
        }
        offsets.push(indices.len() as u64);
    }
    Features::Sparse(csr_from_parts((NODES, NODES), offsets, indices, values).expect("rows"))
}

fn options(summation: Summation) -> MatrixOptions {
    MatrixOptions {
        summation,
        ..MatrixOptions::default()
    }
}

/// How products add, and where the fit goes on from.
type With<'a> = (Summation, Option<&'a Checkpoint>);

type Fit<T> = fn(&Device, Features<T>, With<'_>) -> Result<Vec<Vec<f64>>, FitError>;

/// Fits, from a checkpoint if there is one.
macro_rules! fitted {
    ($params:expr, $device:expr, $x:expr, $with:expr) => {{
        let (summation, checkpoint) = $with;
        let params = $params.matrix_options(options(summation));
        match checkpoint {
            None => params.fit($device, $x)?,
            Some(checkpoint) => params.fit_with_checkpoint($device, $x, checkpoint, |_| {})?,
        }
    }};
}

/// Every method, to numbers that do not depend on time.
fn methods<T: Number>() -> [(&'static str, Fit<T>); 5] {
    [
        ("hits", |device, x, with| {
            let params = Hits::params().max_iter(500).tolerance(1e-5);
            let model = fitted!(params, device, x, with);
            let steps = vec![model.n_iter() as f64];
            Ok(vec![
                model.hubs().to_vec(),
                model.authorities().to_vec(),
                steps,
            ])
        }),
        ("page rank", |device, x, with| {
            let model = fitted!(PageRank::params(), device, x, with);
            Ok(vec![model.scores().to_vec(), vec![model.n_iter() as f64]])
        }),
        ("personalised page rank", |device, x, with| {
            let weights = (0..NODES).map(|i| (i % 4) as f64).collect();
            let params = PageRank::params().personalisation(weights);
            let params = params.dangling(Dangling::Uniform);
            let model = fitted!(params, device, x, with);
            Ok(vec![model.scores().to_vec()])
        }),
        ("svd", |device, x, with| {
            svd(TruncatedSvd::params(3), device, x, with)
        }),
        ("principal components", |device, x, with| {
            svd(TruncatedSvd::params(3).centred(), device, x, with)
        }),
    ]
}

fn svd<T: Number>(
    params: TruncatedSvd,
    device: &Device,
    x: Features<T>,
    with: With<'_>,
) -> Result<Vec<Vec<f64>>, FitError> {
    let model = fitted!(params.tolerance(1e-5), device, x, with);
    Ok(vec![
        model.singular_values().to_vec(),
        model.explained_variance_ratio(),
        model.means().unwrap_or(&[]).to_vec(),
        model.components().iter().copied().collect(),
    ])
}

/// What every member finds.
fn of_members<T: Number, R: Debug + Send>(
    x: &Features<T>,
    shares: &[usize],
    of: impl Fn(&Device, Features<T>) -> R + Sync,
) -> Vec<R> {
    run_threads(shares.len(), |group| {
        let first: usize = shares[..group.rank()].iter().sum();
        let own = x.select_rows(first..first + shares[group.rank()]);
        of(&Device::cpu_of(&group), own)
    })
}

fn have_the_same_bits<T: Number>() {
    let (x, with) = (graph::<T>(), (Summation::Reproducible, None));
    for (name, method) in methods::<T>() {
        let expected = method(&Device::cpu(), x.clone(), with).expect("a fit");
        for shares in SHARES {
            for found in of_members(&x, shares, |device, own| method(device, own, with)) {
                assert_eq!(found.as_ref(), Ok(&expected), "{name} {shares:?}");
            }
        }
    }
}

#[test]
fn reproducible_scores_and_vectors_have_the_bits_of_one_process() {
    have_the_same_bits::<f64>();
    have_the_same_bits::<f32>();
}

/// A fit that is stopped later each time until it ends, by another number of members each time; how often it was stopped.
fn in_parts<T: Number>(
    method: Fit<T>,
    x: &Features<T>,
    checkpoint: &Checkpoint,
) -> (Vec<Vec<f64>>, usize) {
    for part in 0..1_000 {
        let shares = [&[NODES][..], &[60, 40, 0, 50], &[50, 100]][part % 3];
        let found = of_members(x, shares, |device, own| {
            let questions = Cell::new(0);
            let is_over = move || {
                questions.set(questions.get() + 1);
                questions.get() > 1 + part
            };
            let with = (Summation::Reproducible, Some(checkpoint));
            interruptible(is_over, || method(device, own, with))
        });
        let ended = |found: &Result<_, FitError>| found == &Err(FitError::Op(OpError::Interrupted));
        if !found.iter().all(ended) {
            let mut each = found
                .into_iter()
                .map(|found| found.expect("all members end"));
            return (each.next().expect("one member at least"), part);
        }
    }
    panic!("it gets nowhere");
}

#[test]
fn fits_that_were_interrupted_have_the_bits_of_others() {
    let (x, folder) = (graph::<f64>(), tempfile::tempdir().expect("a folder"));
    for (number, (name, method)) in methods::<f64>().into_iter().enumerate() {
        let undisturbed = (Summation::Reproducible, None);
        let expected = method(&Device::cpu(), x.clone(), undisturbed).expect("a fit");
        let path = folder.path().join(number.to_string());
        let checkpoint = Checkpoint::new(path).every(Duration::ZERO);
        let (found, parts) = in_parts(method, &x, &checkpoint);
        assert_eq!(found, expected, "{name}");
        assert!(parts > 3, "{name} was ended {parts} times");
    }
}

#[test]
fn a_checkpoint_of_another_fit_is_refused() {
    let (x, folder) = (graph::<f64>(), tempfile::tempdir().expect("a folder"));
    let checkpoint = Checkpoint::new(folder.path().join("checkpoint")).every(Duration::ZERO);
    let fit = |damping: f64, x: &Features<f64>| {
        let params = PageRank::params().damping(damping);
        params.fit_with_checkpoint(&Device::cpu(), x.clone(), &checkpoint, |_| {})
    };
    fit(0.85, &x).expect("scores");
    let differs = |found: Result<_, FitError>| match found {
        Err(FitError::Checkpoint(CheckpointError::Foreign { what, .. })) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(differs(fit(0.5, &x)), "damping");
    let mut other = ndarray::Array2::<f64>::ones((NODES, NODES));
    other[[0, 0]] = 2.0;
    let other = Features::Dense(other);
    assert_eq!(differs(fit(0.85, &other)), "a digest of the rows of X");
    fit(0.85, &x).expect("scores");
}

/// Sums in another order differ by rounding, of which steps of power iteration and of Lanczos' leave some hundred times the
/// unit of f64 over a gap of about a hundredth.
#[test]
fn scores_and_vectors_agree_with_one_process() {
    let (x, with) = (graph::<f64>(), (Summation::default(), None));
    for (name, method) in methods::<f64>() {
        let expected = method(&Device::cpu(), x.clone(), with).expect("a fit");
        for shares in SHARES {
            for found in of_members(&x, shares, |device, own| method(device, own, with)) {
                let found = found.expect("a fit");
                let pairs = found.iter().flatten().zip(expected.iter().flatten());
                for (a, b) in pairs {
                    assert!((a - b).abs() <= 1e-9, "{name} {shares:?}: {a} {b}");
                }
            }
        }
    }
}

#[test]
fn coordinates_are_of_all_rows() {
    let x = graph::<f64>();
    let model = TruncatedSvd::params(2)
        .fit(&Device::cpu(), x.clone())
        .expect("vectors");
    let expected = model.transform(&Device::cpu(), x.clone()).expect("rows");
    for shares in SHARES {
        for found in of_members(&x, shares, |device, own| model.transform(device, own)) {
            assert_eq!(found.as_ref(), Ok(&expected));
        }
    }
}

/// An edge that one member has is an error of all, by its row among all.
#[test]
fn wrong_edges_are_the_same_error_of_all() {
    let mut x = ndarray::Array2::<f64>::ones((6, 6));
    (x[[4, 1]], x[[5, 2]]) = (-1.0, f64::NAN);
    let x = Features::Dense(x);
    let of = |device: &Device, own: Features<f64>| {
        let hits = Hits::params().fit(device, own.clone()).map(|_| ());
        (hits, PageRank::params().fit(device, own).map(|_| ()))
    };
    let edge = Err(FitError::Edge {
        row: 4,
        value: -1.0,
    });
    assert_eq!(of(&Device::cpu(), x.clone()), (edge.clone(), edge.clone()));
    for shares in [&[6][..], &[0, 6], &[5, 1], &[2, 0, 3, 1]] {
        for found in of_members(&x, shares, of) {
            assert_eq!(found, (edge.clone(), edge.clone()), "{shares:?}");
        }
    }
}

#[test]
fn graphs_of_other_shapes_are_refused_by_all() {
    let x = Features::Dense(ndarray::Array2::<f64>::ones((6, 5)));
    for found in of_members(&x, &[4, 0, 2], |device, own| {
        let none = own.select_rows(0..0);
        let hits = Hits::params().fit(device, none).map(|_| ());
        (PageRank::params().fit(device, own).map(|_| ()), hits)
    }) {
        let (rows, cols) = (6, 5);
        let square = Err(FitError::NotSquare { rows, cols });
        assert_eq!(found, (square, Err(FitError::NoRows)));
    }
}
