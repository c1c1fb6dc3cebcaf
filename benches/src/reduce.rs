//! Reductions on the GPU: sums from 2¹⁶ to 2³⁰ elements beside CUB, other statistics, rows and columns, and the
//! steps of the lecture's ladder.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use ndarray::Array2;
use warpfuse::device::buffer::RowLayout;
use warpfuse::device::{Buffer, Device};
use warpfuse::matrix::{Dtype, Element, Features};
use warpfuse::ops::Number;
use warpfuse::ops::reduce::ladder::{Climber, STEPS, Step};
use warpfuse::ops::reduce::{Parts, Reducer, Reducible, Reproducibility, Sought, Statistic, Term};
use warpfuse::plan::fused::Product;

use crate::case::{Case, SEED};
use crate::data;
use crate::gpu::Gpu;
use crate::peers::{self, Inputs, Peer, cub};
use crate::record::{Measured, Recorder};
use crate::shape::Shape;

const LENGTHS: [usize; 8] = [
    1 << 16,
    1 << 18,
    1 << 20,
    1 << 22,
    1 << 24,
    1 << 26,
    1 << 28,
    1 << 30,
];
/// Of everything but plain sums.
const LENGTH: usize = 1 << 28;
/// The lecture's 32 Mi.
const LADDER: usize = 1 << 25;
const MATRICES: [(usize, usize); 2] = [(11_000_000, 28), (1_000_000, 256)];
/// Columns of matrices whose rows are added up, each of [`NARROW_BYTES`] in f32 and f64.
const NARROW: [usize; 12] = [2, 3, 4, 8, 9, 16, 28, 33, 50, 62, 64, 100];
const NARROW_BYTES: usize = 1 << 30;
/// f64 accumulation of f32 values uniform in [−½, ½) leaves hardly any error; a wrong element does.
const LIMIT: f64 = 1e-12;

/// Records all cases of the family.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    for len in LENGTHS {
        let work = [
            ("sum_fixed", Reproducibility::Device),
            ("sum_free", Reproducibility::Fast),
        ];
        let cases = work.map(|(work, _)| case(work, Shape::Vector { len }));
        if !cases.iter().any(|case| recorder.wants(case)) {
            continue;
        }
        let x = match Array::<f32>::new(gpu, len) {
            Ok(x) => x,
            Err(reason) => {
                recorder.fail(&cases, &reason)?;
                continue;
            }
        };
        for (case, (_, level)) in cases.iter().zip(work) {
            recorder.measure(case, || x.sum(level))?;
        }
        if len == LENGTH {
            others(&x, recorder)?;
        }
    }
    ladder(gpu, recorder)?;
    MATRICES
        .into_iter()
        .try_for_each(|shape| parts(gpu, recorder, shape))?;
    NARROW.into_iter().try_for_each(|cols| {
        narrow::<f32>(gpu, recorder, cols)?;
        narrow::<f64>(gpu, recorder, cols)
    })
}

fn case(work: &'static str, shape: Shape) -> Case {
    case_of(work, shape, Dtype::F32)
}

fn case_of(work: &'static str, shape: Shape, dtype: Dtype) -> Case {
    Case {
        family: "reduce",
        work,
        shape,
        dtype: dtype.into(),
        seed: SEED,
    }
}

/// An array in host memory and on the GPU.
struct Array<'a, T: Number> {
    gpu: &'a Gpu,
    host: Vec<T>,
    on_gpu: Buffer<T>,
    ceiling_gbs: f64,
}

impl<'a, T: Number> Array<'a, T> {
    fn new(gpu: &'a Gpu, len: usize) -> Result<Array<'a, T>> {
        let host = data::values::<T>(len, SEED + 40);
        Ok(Array {
            gpu,
            on_gpu: gpu.device.upload(&host)?,
            ceiling_gbs: gpu.ceiling_gbs(len * size_of::<T>())?,
            host,
        })
    }
}

impl Array<'_, f32> {
    /// Checked against the CPU: to the last bit where that is promised.
    fn sum(&self, level: Reproducibility) -> Result<Measured> {
        let cpu = Device::cpu();
        let truth = Reducer::new(&cpu)?.sum(&cpu.upload(&self.host)?)?;
        let mut reduce = Reducer::new(&self.gpu.device)?.with_level(level);
        let sum = reduce.sum(&self.on_gpu)?;
        let is_same = sum.to_bits() == truth.to_bits();
        ensure!(
            is_same || level != Reproducibility::Device,
            "{sum:e} on the GPU, {truth:e} on the CPU: expected the same bits"
        );
        let magnitude = self.host.len() as f64 / 4.0;
        let error = (sum - truth).abs() / magnitude;
        ensure!(error <= LIMIT, "wrong result: relative error {error:e}");
        let measured = self.time(&mut reduce, Statistic::Sum(Term::Value), 1)?;
        let mut peers = BTreeMap::new();
        if let Some(us) = cub::sum_us(self.host.len()) {
            peers.insert("cub".to_owned(), us);
        }
        Ok(Measured { peers, ..measured }.with_error(error))
    }

    /// Reads `arrays` arrays.
    fn time(&self, reduce: &mut Reducer, statistic: Statistic, arrays: usize) -> Result<Measured> {
        let repeated = reduce.repeated(statistic, &self.on_gpu)?;
        let (entry, grid) = repeated.entry();
        let times = self
            .gpu
            .sampler
            .time(&self.gpu.device, || repeated.submit())?;
        let bytes = arrays * self.host.len() * size_of::<f32>();
        Ok(Measured::new(format!("{entry} grid {grid}"), times, bytes)
            .with_ceiling(self.ceiling_gbs))
    }

    fn statistic(&self, statistic: Statistic) -> Result<Measured> {
        let mut reduce = Reducer::new(&self.gpu.device)?;
        self.time(&mut reduce, statistic, 1)
    }
}

/// Every other statistic; that they are right is for the tests.
fn others(x: &Array<'_, f32>, recorder: &Recorder) -> Result<()> {
    let shape = Shape::Vector { len: LENGTH };
    for (work, statistic) in [
        ("norm1", Statistic::Sum(Term::Magnitude)),
        ("norm2", Statistic::Squares),
        ("count", Statistic::Sum(Term::IsNonzero)),
        ("arg_max", Statistic::Search(Sought::Greatest)),
        ("norm_max", Statistic::Search(Sought::Magnitude)),
        ("moments", Statistic::Moments),
    ] {
        recorder.measure(&case(work, shape), || x.statistic(statistic))?;
    }
    Ok(())
}

fn ladder(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    const NAMES: [&str; STEPS.len()] = [
        "ladder_v0",
        "ladder_v1",
        "ladder_v2",
        "ladder_v3",
        "ladder_v4",
        "ladder_v5",
    ];
    let shape = Shape::Vector { len: LADDER };
    for (name, step) in NAMES.into_iter().zip(STEPS) {
        recorder.measure(&case(name, shape), || climb(gpu, step))?;
    }
    let ours = case("sum_fixed", shape);
    recorder.measure(&ours, || {
        Array::<f32>::new(gpu, LADDER)?.sum(Reproducibility::Device)
    })
}

fn climb(gpu: &Gpu, step: Step) -> Result<Measured> {
    let host = data::values::<f32>(LADDER, SEED + 40);
    let x = gpu.device.upload(&host)?;
    let mut climber = Climber::new(&gpu.device, step, LADDER)?;
    climber.submit(&x)?;
    let truth: f64 = host.iter().map(|x| f64::from(*x)).sum();
    let error = (f64::from(climber.fetch()?) - truth).abs() / (LADDER as f64 / 4.0);
    ensure!(error <= 1e-6, "wrong result: relative error {error:e}");
    let times = gpu.sampler.time(&gpu.device, || climber.submit(&x))?;
    let bytes = LADDER * size_of::<f32>();
    Ok(Measured::new(format!("{step:?}"), times, bytes)
        .with_ceiling(gpu.ceiling_gbs(bytes)?)
        .with_error(error))
}

/// Sums of rows and of columns.
fn parts(gpu: &Gpu, recorder: &Recorder, (rows, cols): (usize, usize)) -> Result<()> {
    let shape = Shape::Dense { rows, cols };
    let layout = RowLayout {
        rows,
        cols,
        pitch: cols,
    };
    let works = [
        ("row_sums", Parts::Rows(layout)),
        ("column_sums", Parts::Columns(layout)),
    ];
    let cases = works.map(|(work, _)| case(work, shape));
    if !cases.iter().any(|case| recorder.wants(case)) {
        return Ok(());
    }
    let x = Array::<f32>::new(gpu, rows * cols)?;
    for (case, (_, parts)) in cases.iter().zip(works) {
        recorder.measure(case, || sums(&x, parts))?;
    }
    Ok(())
}

/// Sums of rows, beside cuBLAS's product with a vector of ones.
fn narrow<T>(gpu: &Gpu, recorder: &Recorder, cols: usize) -> Result<()>
where
    T: Number + Reducible<Sum = f64>,
{
    let rows = NARROW_BYTES / size_of::<T>() / cols;
    let case = case_of(
        "row_sums",
        Shape::Dense { rows, cols },
        <T as Element>::DTYPE,
    );
    recorder.measure(&case, || {
        let x = Array::<T>::new(gpu, rows * cols)?;
        let pitch = cols;
        let mut measured = sums(&x, Parts::Rows(RowLayout { rows, cols, pitch }))?;
        measured.peers = of_ones(&x, (rows, cols))?;
        Ok(measured)
    })
}

/// What libraries take for X · 1.
fn of_ones<T: Number>(
    x: &Array<'_, T>,
    (rows, cols): (usize, usize),
) -> Result<BTreeMap<String, f64>> {
    let gpu = x.gpu;
    let truth: Vec<f64> = x
        .host
        .chunks(cols)
        .map(|row| row.iter().map(|x| Element::to_f64(*x)).sum())
        .collect();
    let features = Features::Dense(Array2::from_shape_vec((rows, cols), x.host.clone())?);
    let one = <T as Element>::from_f64(1.0);
    let inputs = Inputs {
        y: &vec![one; cols],
        p: &vec![one; rows],
    };
    let peer = gpu.libraries().peer(&gpu.device, &features, inputs);
    let measure = |mut peer: Box<dyn Peer<T>>| {
        peers::measure(peer.as_mut(), Product::Forward, &truth, &gpu.sampler)
    };
    Ok(peer.map_or(BTreeMap::new(), measure))
}

fn sums<T>(x: &Array<'_, T>, parts: Parts<'_>) -> Result<Measured>
where
    T: Number + Reducible<Sum = f64>,
{
    let cpu = Device::cpu();
    let truth = Reducer::new(&cpu)?.sums(&cpu.upload(&x.host)?, parts)?;
    let mut reduce = Reducer::new(&x.gpu.device)?;
    let mut out = x.gpu.device.zeros::<f64>(parts.len())?;
    reduce.sums_into(&x.on_gpu, parts, &mut out)?;
    ensure!(out.to_vec()? == truth, "other bits than the CPU's");
    let work = || reduce.sums_into(&x.on_gpu, parts, &mut out);
    let times = x.gpu.sampler.time(&x.gpu.device, work)?;
    let bytes = x.host.len() * size_of::<T>() + parts.len() * size_of::<f64>();
    Ok(Measured::new("sums_into", times, bytes)
        .with_ceiling(x.ceiling_gbs)
        .with_error(0.0))
}
