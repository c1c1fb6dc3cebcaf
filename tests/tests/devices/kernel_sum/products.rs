//! Gaussian sums over near points, by every launch that makes distances from products of coordinates.

use anyhow::{Context, Result, ensure};
use gpu_kernels::kernel_sum::products::PAIR_ROUNDOFFS;
use gpu_kernels::kernel_sum::{KernelFunction, KernelSumVariant};
use warpfuse::device::Device;
use warpfuse::matrix::Dtype;
use warpfuse::ops::{Kernel, KernelSum};
use warpfuse::plan::kernel_sum::{Extent, KernelSumPoint, Problem as Planned, points};
use warpfuse_tests::generate::Random;
use warpfuse_tests::tolerance::unit_roundoff;

use super::{Cloud, Problem, Suite, Test, judge, sized, weights};

/// Near points, by products of coordinates: one tile, two, an odd number and an even number of them, and of the last a part.
/// The length scale says how far out they are: ‖u‖² is 1.5 and 54 at most.
const PRODUCTS: [(usize, usize, f64); 5] = [
    (99, 3, 0.1),
    (600, 2, 0.6),
    (1_100, 3, 0.1),
    (1_700, 2, 0.1),
    (20_001, 3, 0.1),
];

/// Adds them, in f32.
pub fn add(suite: &mut Suite) {
    for shape in PRODUCTS {
        let (n, d, length) = shape;
        let test = Test::new(format!("kernel_sum/products_{n}x{d}/{length}"));
        suite.add(sized(test, n * n * d).of_entries(), move |device| {
            by_products(device, shape)
        });
    }
    suite.add(
        Test::new("kernel_sum/products_refused").of_entries(),
        refuses_products,
    );
}

/// The launches by products.
fn launches(device: &Device, problem: &Planned) -> Result<Vec<KernelSumPoint>> {
    let limits = device.limits().context("a device that launches")?;
    let mut all = points(problem, limits);
    all.retain(|point| matches!(point.plan.variant, KernelSumVariant::Products { .. }));
    Ok(all)
}

/// The Gaussian over one set of near points, by blocks of every size.
fn by_products(device: &Device, (n, d, length): (usize, usize, f64)) -> Result<()> {
    let random = &mut Random::new((n * 5 + d) as u64);
    let cloud = &Cloud::<f32>::new(random, n, d);
    let w = weights::<f32>(random, n);
    let problem = Problem {
        function: KernelFunction::Gaussian,
        length,
        targets: cloud,
        sources: cloud,
        w: &w,
    };
    let sums = KernelSum::symmetric(device, problem.kernel()?, cloud.points.view())?;
    let mut truth = problem.sum_truth();
    let magnitudes: Vec<f32> = w.iter().map(|w| w.abs()).collect();
    let positive = Problem {
        w: &magnitudes,
        ..problem
    };
    for (bound, all) in truth.bounds.iter_mut().zip(positive.sum_truth().values) {
        *bound += PAIR_ROUNDOFFS * unit_roundoff(Dtype::F32) * all;
    }
    let there = device.upload(&w)?;
    let chosen = launches(device, &sums.problem_of_sum())?;
    ensure!(chosen.len() == 3, "{} blocks, not three", chosen.len());
    for point in &chosen {
        let mut out = device.upload(&vec![f32::NAN; n])?;
        sums.sum_by(point, &there, &mut out)?;
        judge(device, "products", &problem, &out.to_vec()?, 1, &truth)?;
    }
    Ok(())
}

/// Points that are too far out have no launch by products.
fn refuses_products(device: &Device) -> Result<()> {
    let cloud = &Cloud::<f32>::new(&mut Random::new(9), 600, 3);
    for (length, extent, count) in [(0.1, Extent::Near, 3), (0.05, Extent::Any, 0)] {
        let kernel = Kernel::new(KernelFunction::Gaussian, length)?;
        let sums = KernelSum::symmetric(device, kernel, cloud.points.view())?;
        let problem = sums.problem_of_sum();
        ensure!(
            problem.extent == extent,
            "{length}: found {:?}",
            problem.extent
        );
        let found = launches(device, &problem)?.len();
        ensure!(found == count, "{length}: {found} launches, not {count}");
    }
    Ok(())
}
