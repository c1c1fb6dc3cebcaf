//! Sums over kernels as users call them, and every entry against the f64 reference.

mod products;

use anyhow::{Context, Result, ensure};
use gpu_kernels::kernel_sum::KernelFunction;
use ndarray::Array2;
use warpfuse::device::Device;
use warpfuse::matrix::{Dtype, Element};
use warpfuse::ops::{Kernel, KernelSum, Number, OpError};
use warpfuse::reference::kernel_sum as reference;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::tolerance::{Truth, growth, unit_roundoff};

use super::suite::{self, Suite, Test};

/// Targets, sources, dimensions: around warps, tiles of 64, blocks, stages of 256 to 1,024 sources, windows of 16
/// dimensions, and each number of dimensions that has a body of its own.
const SHAPES: [(usize, usize, usize); 16] = [
    (0, 5, 2),
    (5, 0, 2),
    (1, 1, 1),
    (31, 33, 2),
    (63, 65, 3),
    (65, 129, 4),
    (65, 255, 1),
    (40, 70, 15),
    (66, 20, 17),
    (9, 70, 33),
    (700, 513, 3),
    (513, 2_100, 2),
    (2_049, 1_023, 1),
    (1_025, 4_097, 3),
    (300, 900, 20),
    (130, 70_000, 3),
];

/// One set of points: pairs of tiles that are few, odd, even, and of the last a part.
const SYMMETRIC: [(usize, usize); 12] = [
    (33, 3),
    (5, 4),
    (33, 17),
    (65, 5),
    (99, 4),
    (300, 4),
    (9_001, 5),
    (513, 2),
    (1_100, 3),
    (20_001, 3),
    (31_000, 1),
    (9_000, 2),
];

/// Targets whose truth is computed.
const JUDGED: usize = 60;
const LENGTH: f64 = 0.7;
/// How far the cloud of points lies from the origin, in its own diameters: rounding must not see it.
const OFFSET: f64 = 3.0;

/// Adds every function in both element types.
pub fn add(suite: &mut Suite) {
    for function in KernelFunction::ALL {
        for shape in SHAPES {
            add_two_sets(suite, function, shape);
        }
        for shape in SYMMETRIC {
            add_one_set(suite, function, shape);
        }
    }
    products::add(suite);
    add_type::<f32>(suite);
    add_type::<f64>(suite);
}

fn add_two_sets(suite: &mut Suite, function: KernelFunction, shape: (usize, usize, usize)) {
    let (m, n, d) = shape;
    let test = |dtype: Dtype| {
        let name = format!("kernel_sum/{m}x{n}x{d}/{function}/{dtype}");
        sized(Test::new(name), m * n * d)
    };
    let of_f32 = move |device: &Device| two_sets::<f32>(device, function, shape);
    let of_f64 = move |device: &Device| two_sets::<f64>(device, function, shape);
    suite.add_in_both(test, of_f32, of_f64);
}

fn add_one_set(suite: &mut Suite, function: KernelFunction, shape: (usize, usize)) {
    let (n, d) = shape;
    let test = |dtype: Dtype| {
        let name = format!("kernel_sum/symmetric_{n}x{d}/{function}/{dtype}");
        sized(Test::new(name), n * n * d)
    };
    let of_f32 = move |device: &Device| one_set::<f32>(device, function, shape);
    let of_f64 = move |device: &Device| one_set::<f64>(device, function, shape);
    suite.add_in_both(test, of_f32, of_f64);
}

fn add_type<T: Number>(suite: &mut Suite) {
    let refusals = Test::new(format!("kernel_sum/refusals/{}", T::DTYPE));
    suite.add(refusals, refuses::<T>);
    let vectors = Test::new(format!("kernel_sum/vectors/{}", T::DTYPE));
    suite.add(vectors, many_vectors::<T>);
    let vectors = Test::new(format!("kernel_sum/vectors_of_one_set/{}", T::DTYPE));
    suite.add(vectors, many_vectors_of_one_set::<T>);
    let repeats = Test::new(format!("kernel_sum/same_bits/{}", T::DTYPE));
    suite.add(repeats, same_bits::<T>);
}

/// Emulators get few pairs; many go to GPUs alone, as the CPU has one body for all sizes.
fn sized(test: Test, work: usize) -> Test {
    match work {
        0..=40_000 => test,
        40_001..=400_000 => test.within(Subset::Full),
        _ => test.within(Subset::Full).of_entries(),
    }
}

/// Points of type T with their values in f64.
struct Cloud<T> {
    points: Array2<T>,
    wide: Vec<f64>,
}

impl<T: Number> Cloud<T> {
    fn new(random: &mut Random, len: usize, dims: usize) -> Cloud<T> {
        let points = Array2::from_shape_fn((len, dims), |_| number::<T>(OFFSET + random.unit()));
        let wide = points.iter().map(|value| Element::to_f64(*value)).collect();
        Cloud { points, wide }
    }

    fn row(&self, i: usize) -> &[f64] {
        let dims = self.points.ncols();
        &self.wide[i * dims..][..dims]
    }
}

/// Everything of a case besides the device.
struct Problem<'a, T> {
    function: KernelFunction,
    length: f64,
    targets: &'a Cloud<T>,
    sources: &'a Cloud<T>,
    w: &'a [T],
}

impl<T: Number> Problem<'_, T> {
    fn weights(&self) -> Vec<f64> {
        self.w.iter().map(|value| Element::to_f64(*value)).collect()
    }

    /// Some targets, the first and the last among them.
    fn judged(&self) -> Vec<usize> {
        let len = self.targets.points.nrows();
        let step = (len / JUDGED).max(1);
        let mut judged: Vec<usize> = (0..len).step_by(step).collect();
        judged.extend(len.checked_sub(1));
        judged
    }

    /// What the rounding of a pair's arguments may change, over Σ|w|: coordinates of up to `reach` are rounded
    /// once, differences and their sum a few times, and no function of this family has a slope above one.
    fn argument_error(&self) -> f64 {
        let dims = self.sources.points.ncols() as f64;
        let reach = self.function.scale() / self.length;
        unit_roundoff(T::DTYPE) * (dims + 16.0 + 4.0 * dims * reach)
    }

    fn sum_truth(&self) -> Truth {
        let w = self.weights();
        let magnitudes: Vec<f64> = w.iter().map(|w| w.abs()).collect();
        let all: f64 = magnitudes.iter().sum();
        let of = |w: &[f64], i: usize| {
            reference::sum(
                self.function,
                self.length,
                self.targets.row(i),
                &self.sources.wide,
                w,
            )
        };
        let additions = growth(4_096.min(w.len()) + 8, unit_roundoff(T::DTYPE));
        let judged = self.judged();
        let bound = |&i: &usize| additions * of(&magnitudes, i) + self.argument_error() * all;
        Truth {
            values: judged.iter().map(|&i| of(&w, i)).collect(),
            bounds: judged.iter().map(bound).collect(),
        }
    }

    /// Second derivatives are bounded by 3·(scale/ℓ)², but for the functions with a kink, whose slope changes its
    /// direction as a whole.
    fn gradient_truth(&self) -> Truth {
        let w = self.weights();
        let scale = self.function.scale() / self.length;
        let dims = self.targets.points.ncols();
        let mut truth = Truth::exact(Vec::new());
        for i in self.judged() {
            let x = self.targets.row(i);
            let points = self.sources.wide.chunks_exact(dims);
            let near = points
                .zip(&w)
                .map(|(y, w)| w.abs() * (1.0 + self.bend(x, y)));
            let bound = near.sum::<f64>()
                * scale
                * (4.0 * self.argument_error()
                    + growth(80 + w.len() / 64, unit_roundoff(T::DTYPE)));
            for d in 0..dims {
                let value =
                    reference::gradient(self.function, self.length, x, &self.sources.wide, &w, d);
                truth.values.push(value);
                truth.bounds.push(bound);
            }
        }
        truth
    }

    /// How quickly the slope turns between near points, for Matérn 1/2 without bound.
    fn bend(&self, x: &[f64], y: &[f64]) -> f64 {
        let squares = x.iter().zip(y).map(|(x, y)| (x - y) * (x - y));
        match self.function {
            KernelFunction::Matern12 => self.length / squares.sum::<f64>().sqrt().max(1e-7),
            _ => 2.0,
        }
    }

    fn kernel(&self) -> Result<Kernel> {
        Ok(Kernel::new(self.function, self.length)?)
    }
}

fn weights<T: Number>(random: &mut Random, len: usize) -> Vec<T> {
    (0..len).map(|_| number(random.signed())).collect()
}

fn two_sets<T: Number>(
    device: &Device,
    function: KernelFunction,
    (m, n, d): (usize, usize, usize),
) -> Result<()> {
    let random = &mut Random::new((m * 31 + n * 7 + d) as u64);
    let (targets, sources) = (Cloud::<T>::new(random, m, d), Cloud::<T>::new(random, n, d));
    let (w, u) = (weights::<T>(random, n), weights::<T>(random, m));
    let (targets, sources) = (&targets, &sources);
    let forward = Problem {
        function,
        length: LENGTH,
        targets,
        sources,
        w: &w,
    };
    let backward = Problem {
        function,
        length: LENGTH,
        targets: sources,
        sources: targets,
        w: &u,
    };
    let kernel = forward.kernel()?;
    let sums = KernelSum::new(device, kernel, targets.points.view(), sources.points.view())?;
    let (w_there, u_there) = (device.upload(&w)?, device.upload(&u)?);
    let poison = |len| device.upload(&vec![number::<T>(f64::NAN); len]);

    let mut out = poison(m)?;
    sums.sum(&w_there, &mut out)?;
    judge(
        device,
        "sum",
        &forward,
        &out.to_vec()?,
        1,
        &forward.sum_truth(),
    )?;
    let mut out = poison(n)?;
    sums.weights_gradient(&u_there, &mut out)?;
    judge(
        device,
        "weights gradient",
        &backward,
        &out.to_vec()?,
        1,
        &backward.sum_truth(),
    )?;
    let mut out = poison(m * d)?;
    sums.targets_gradient(&w_there, &mut out)?;
    judge(
        device,
        "targets gradient",
        &forward,
        &out.to_vec()?,
        d,
        &forward.gradient_truth(),
    )?;
    let mut out = poison(n * d)?;
    sums.sources_gradient(&u_there, &mut out)?;
    judge(
        device,
        "sources gradient",
        &backward,
        &out.to_vec()?,
        d,
        &backward.gradient_truth(),
    )
}

/// K + β·I times w, K symmetric.
fn one_set<T: Number>(
    device: &Device,
    function: KernelFunction,
    (n, d): (usize, usize),
) -> Result<()> {
    let random = &mut Random::new((n * 3 + d) as u64);
    let points = &Cloud::<T>::new(random, n, d);
    let w = weights::<T>(random, n);
    let problem = Problem {
        function,
        length: LENGTH,
        targets: points,
        sources: points,
        w: &w,
    };
    let sums = KernelSum::symmetric(device, problem.kernel()?, points.points.view())?;
    let there = device.upload(&w)?;
    let mut out = device.upload(&vec![number::<T>(f64::NAN); n])?;
    let beta = 0.25;
    sums.sum_and_add(&there, (number(beta), &there), &mut out)?;
    let mut truth = problem.sum_truth();
    for (value, i) in truth.values.iter_mut().zip(problem.judged()) {
        *value += beta * Element::to_f64(w[i]);
    }
    judge(device, "symmetric", &problem, &out.to_vec()?, 1, &truth)
}

/// Six vectors at once over one set of points: a launch of four and one of two.
fn many_vectors_of_one_set<T: Number>(device: &Device) -> Result<()> {
    let random = &mut Random::new(8);
    let points = &Cloud::<T>::new(random, 90, 4);
    let function = KernelFunction::Gaussian;
    let kernel = Kernel::new(function, LENGTH)?;
    let sums = KernelSum::symmetric(device, kernel, points.points.view())?;
    let w = weights::<T>(random, 6 * 90);
    let mut out = device.zeros(6 * 90)?;
    sums.sum(&device.upload(&w)?, &mut out)?;
    for (w, computed) in w.chunks(90).zip(out.to_vec()?.chunks(90)) {
        let problem = Problem {
            function,
            length: LENGTH,
            targets: points,
            sources: points,
            w,
        };
        let truth = problem.sum_truth();
        judge(device, "vectors of one set", &problem, computed, 1, &truth)?;
    }
    Ok(())
}

/// Compares what belongs to the judged targets.
fn judge<T: Number>(
    device: &Device,
    what: &str,
    problem: &Problem<'_, T>,
    computed: &[T],
    each: usize,
    truth: &Truth,
) -> Result<()> {
    ensure!(
        computed.iter().all(|value| Element::is_finite(*value)),
        "{what}: a result was not written"
    );
    let judged = problem.judged();
    let values = judged
        .iter()
        .flat_map(|i| computed[i * each..][..each].iter().copied());
    let values: Vec<T> = values.collect();
    suite::check(device, &format!("kernel_sum {what}"), &values, truth)
        .with_context(|| what.to_owned())
}

/// More vectors than a launch takes, each as if it were alone.
fn many_vectors<T: Number>(device: &Device) -> Result<()> {
    let random = &mut Random::new(5);
    let (targets, sources) = (
        &Cloud::<T>::new(random, 70, 3),
        &Cloud::<T>::new(random, 90, 3),
    );
    let function = KernelFunction::Matern32;
    let kernel = Kernel::new(function, LENGTH)?;
    let sums = KernelSum::new(device, kernel, targets.points.view(), sources.points.view())?;
    let w = weights::<T>(random, 6 * 90);
    let mut out = device.zeros(6 * 70)?;
    sums.sum(&device.upload(&w)?, &mut out)?;
    let out = out.to_vec()?;
    for vector in 0..6 {
        let w = &w[vector * 90..][..90];
        let problem = Problem {
            function,
            length: LENGTH,
            targets,
            sources,
            w,
        };
        let computed = &out[vector * 70..][..70];
        judge(
            device,
            "vectors",
            &problem,
            computed,
            1,
            &problem.sum_truth(),
        )?;
    }
    Ok(())
}

fn same_bits<T: Number>(device: &Device) -> Result<()> {
    let random = &mut Random::new(6);
    let (targets, sources) = (
        Cloud::<T>::new(random, 50, 3),
        Cloud::<T>::new(random, 300, 3),
    );
    let kernel = Kernel::new(KernelFunction::Gaussian, LENGTH)?;
    let sums = KernelSum::new(device, kernel, targets.points.view(), sources.points.view())?;
    let w = device.upload(&weights::<T>(random, 300))?;
    let mut out = [device.zeros(50)?, device.zeros(50)?];
    for out in &mut out {
        sums.sum(&w, out)?;
    }
    ensure!(
        out[0].to_vec()? == out[1].to_vec()?,
        "two sums of the same differ"
    );
    Ok(())
}

fn refuses<T: Number>(device: &Device) -> Result<()> {
    let bad_scale = [0.0, -1.0, f64::NAN, f64::INFINITY];
    for scale in bad_scale {
        let kernel = Kernel::new(KernelFunction::Gaussian, scale);
        ensure!(
            matches!(kernel, Err(OpError::Parameter { .. })),
            "length scale {scale}"
        );
    }
    let kernel = Kernel::new(KernelFunction::Gaussian, 1.0)?;
    let points = |rows, cols| Array2::from_elem((rows, cols), number::<T>(1.0));
    let (x, y) = (points(4, 2), points(5, 2));
    let other = KernelSum::new(device, kernel, points(4, 3).view(), y.view());
    ensure!(
        matches!(other, Err(OpError::Length { .. })),
        "another dimension"
    );
    let none = KernelSum::symmetric(device, kernel, points(4, 0).view());
    ensure!(matches!(none, Err(OpError::Length { .. })), "no dimension");
    let mut nan = points(4, 2);
    nan[[2, 1]] = number(f64::NAN);
    let nan = KernelSum::new(device, kernel, nan.view(), y.view());
    ensure!(
        matches!(nan, Err(OpError::NotFinite { index: 2, .. })),
        "NaN"
    );
    let sums = KernelSum::new(device, kernel, x.view(), y.view())?;
    let (four, five) = (device.zeros::<T>(4)?, device.zeros::<T>(5)?);
    let refused = |result| matches!(result, Err(OpError::Length { .. }));
    ensure!(
        refused(sums.sum(&four, &mut device.zeros(4)?)),
        "weights of M"
    );
    ensure!(
        refused(sums.sum(&five, &mut device.zeros(5)?)),
        "a result of N"
    );
    ensure!(
        refused(sums.targets_gradient(&five, &mut device.zeros(9)?)),
        "a short gradient"
    );
    Ok(sums.sum(&five, &mut device.zeros(4)?)?)
}

fn number<T: Number>(value: f64) -> T {
    <T as Element>::from_f64(value)
}
