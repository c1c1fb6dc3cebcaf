//! Sums that members of a group share, against those of one process.

use gpu_kernels::kernel_sum::KernelFunction;
use ndarray::{Array2, s};

use super::*;
use crate::device::EmulatorOptions;
use crate::device::group::run_threads;

const TARGETS: usize = 67;
const SOURCES: usize = 131;
const DIMS: usize = 3;
/// Targets that members bring: even, uneven, and none.
const SHARES: [&[usize]; 4] = [&[TARGETS], &[0, TARGETS], &[50, 1, 16], &[20, 40, 0, 7]];

fn points<T: Number>(len: usize, seed: usize) -> Array2<T> {
    let value = |i: usize, j: usize| ((i * (7 + 4 * j) + seed * (j + 3)) % 29) as f64 / 29.0;
    Array2::from_shape_fn((len, DIMS), |(i, j)| <T as Element>::from_f64(value(i, j)))
}

/// Above 0, so that a sum is as large as its terms are together.
fn weights<T: Number>(len: usize) -> Vec<T> {
    let of = |i: usize| <T as Element>::from_f64(0.25 + (i * 13 % 17) as f64 / 16.0);
    (0..len).map(of).collect()
}

/// Everything that sums offer: of two vectors, of one with an addend, and both kinds of derivatives.
fn all_of<T: Number>(sums: &KernelSum<T>) -> Result<[Vec<T>; 5], OpError> {
    let (device, m, n) = (sums.device().clone(), sums.targets(), sums.sources());
    let (w, u) = (device.upload(&weights(2 * n))?, device.upload(&weights(m))?);
    let one = device.upload(&weights(n))?;
    let (mut two, mut f) = (device.zeros(2 * m)?, device.zeros(m)?);
    sums.sum(&w, &mut two)?;
    sums.sum_and_add(&one, (<T as Element>::from_f64(0.5), &u), &mut f)?;
    let (mut of_weights, mut of_targets) = (device.zeros(n)?, device.zeros(m * DIMS)?);
    let mut of_sources = device.zeros(n * DIMS)?;
    sums.weights_gradient(&u, &mut of_weights)?;
    sums.targets_gradient(&one, &mut of_targets)?;
    sums.sources_gradient(&u, &mut of_sources)?;
    let found = [two, f, of_weights, of_targets, of_sources].map(|found| found.to_vec());
    let [two, f, of_weights, of_targets, of_sources] = found;
    Ok([two?, f?, of_weights?, of_targets?, of_sources?])
}

/// Over two sets of points, or one where `sources` is none.
fn sums_of<T: Number>(
    device: &Device,
    own: ndarray::ArrayView2<'_, T>,
    sources: Option<&Array2<T>>,
) -> Result<[Vec<T>; 5], OpError> {
    let kernel = Kernel::new(KernelFunction::Matern32, 0.8)?;
    let sums = match sources {
        Some(sources) => KernelSum::new(device, kernel, own, sources.view())?,
        None => KernelSum::symmetric(device, kernel, own)?,
    };
    assert_eq!(sums.targets(), TARGETS);
    all_of(&sums)
}

/// What every member finds.
fn shared<T: Number>(
    kind: &Device,
    shares: &[usize],
    (all, sources): (&Array2<T>, Option<&Array2<T>>),
) -> Vec<[Vec<T>; 5]> {
    let found = run_threads(shares.len(), |group| {
        let first: usize = shares[..group.rank()].iter().sum();
        let own = all.slice(s![first..first + shares[group.rank()], ..]);
        sums_of(&kind.in_group(&group)?, own, sources)
    });
    let each = found.into_iter();
    each.map(|found| found.unwrap_or_else(|error| panic!("{shares:?}: {error}")))
        .collect()
}

fn on_cpus<T: Number>() {
    let (all, others) = (points::<T>(TARGETS, 1), points::<T>(SOURCES, 5));
    for sources in [Some(&others), None] {
        let expected = sums_of(&Device::cpu(), all.view(), sources).expect("sums");
        for shares in SHARES {
            for found in shared(&Device::cpu(), shares, (&all, sources)) {
                assert!(found == expected, "{shares:?}, {}", T::DTYPE);
            }
        }
    }
}

#[test]
fn members_have_the_bits_of_one_process() {
    on_cpus::<f32>();
    on_cpus::<f64>();
}

/// GPUs add slices of sources, as many as suit their share of the targets: to the accuracy that is promised.
#[test]
fn emulated_members_agree_with_the_cpu() {
    let (all, others) = (points::<f64>(TARGETS, 1), points::<f64>(SOURCES, 5));
    let emulator = Device::small_emulator(EmulatorOptions::default());
    for sources in [Some(&others), None] {
        let expected = sums_of(&Device::cpu(), all.view(), sources).expect("sums");
        for found in shared(&emulator, &[50, 1, 16], (&all, sources)) {
            for (found, expected) in found.iter().zip(&expected) {
                let largest = expected.iter().fold(0.0_f64, |all, of| all.max(of.abs()));
                assert_eq!(found.len(), expected.len());
                // Terms of derivatives have both signs: their sum of sizes is at most 100 times the largest of them.
                let close = |(f, e): (&f64, &f64)| (f - e).abs() <= 1e-10 * largest;
                assert!(
                    found.iter().zip(expected).all(close),
                    "{found:?} {expected:?}"
                );
            }
        }
    }
}

#[test]
fn members_of_other_points_are_named() {
    let found = run_threads(2, |group| {
        let (own, rank) = (points::<f64>(9, 1), group.rank());
        let device = Device::cpu_of(&group);
        let kernel = Kernel::new(KernelFunction::Gaussian, 1.0)?;
        let narrow = own.slice(s![.., ..DIMS - rank]);
        KernelSum::symmetric(&device, kernel, narrow).map(drop)
    });
    for found in found {
        let text = found.expect_err("other columns").to_string();
        assert!(
            text.contains("rank 1 are points of 2 coordinates"),
            "{text}"
        );
    }
    let found = run_threads(2, |group| {
        let (own, others) = (points::<f64>(9, 1), points::<f64>(5 + group.rank(), 1));
        let kernel = Kernel::new(KernelFunction::Gaussian, 1.0)?;
        KernelSum::new(&Device::cpu_of(&group), kernel, own.view(), others.view()).map(drop)
    });
    for found in found {
        let text = found.expect_err("other sources").to_string();
        assert!(text.contains("rank 1 are 6 sources"), "{text}");
    }
}
