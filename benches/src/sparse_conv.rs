//! Convolutional layers with sparse filters: the source's layer by each of its steps, and layers of known networks at
//! several densities by every strategy, the planner's choice first.

use std::time::Instant;

use anyhow::{Context, Result};
use gpu_kernels::sparse_conv::Accumulator as _;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use warpfuse::device::{Buffer, Device};
use warpfuse::matrix::filters::{FilterShape, FilterValue, Nonzero, SparseFilters};
use warpfuse::ops::sparse_conv::{
    ArrayConv, ConvElement, ConvPlan, ConvShape, ConvStrategy, ConvSum, F16, I8, I16, Layer, Maps,
    SparseConv,
};

use crate::case::{Case, Numbers, SEED};
use crate::data;
use crate::gpu::Gpu;
use crate::record::{Measured, Recorder};
use crate::sampling::{Sampler, Times};
use crate::shape::Shape;

/// Channels, filters, side of the map, side of the filters: the 3 × 3 layers of ResNet-50 and VGG-16, five 1 × 1 layers.
const LAYERS: [[usize; 4]; 14] = [
    [64, 64, 56, 3],
    [128, 128, 28, 3],
    [256, 256, 14, 3],
    [512, 512, 7, 3],
    [64, 64, 224, 3],
    [128, 128, 112, 3],
    [256, 256, 56, 3],
    [512, 512, 28, 3],
    [512, 512, 14, 3],
    [64, 256, 56, 1],
    [256, 64, 56, 1],
    [512, 128, 28, 1],
    [1024, 256, 14, 1],
    [2048, 512, 7, 1],
];
/// Nonzeros of a thousand weights.
const DENSITIES: [usize; 5] = [50, 100, 111, 200, 500];
/// Images.
const BATCHES: [usize; 2] = [1, 16];
/// Bytes that the link's rate is measured with.
const LINK_BYTES: usize = 1 << 28;
/// Layers that the planner's constants are fitted to: drawn, none of them in [`LAYERS`].
const DRAWN: usize = 40;

/// Records all cases of the family.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    source(gpu, recorder)?;
    for batch in BATCHES {
        sparse_inputs(gpu, recorder, batch)?;
    }
    for batch in BATCHES {
        for sizes in LAYERS {
            let shape = layer(batch, sizes);
            each_type(gpu, recorder, "layer", (&shape, &DENSITIES))?;
        }
    }
    for i in 0..DRAWN {
        let (shape, permille) = drawn(i);
        each_type(gpu, recorder, "drawn", (&shape, &[permille]))?;
    }
    Ok(())
}

/// A layer by a counter: sizes and densities like those of networks, but others.
fn drawn(i: usize) -> (ConvShape, usize) {
    let of = |what: usize, choices: &[usize]| {
        let at = data::uniform(SEED + 70, 16 * i + what) * choices.len() as f64;
        choices[at as usize]
    };
    let widths = [48, 96, 160, 192, 320, 384, 640];
    let (channels, filters) = (of(0, &widths), of(1, &widths));
    let side = of(2, &[6, 10, 12, 20, 24, 34, 40, 48, 64, 96]);
    let kernel = of(3, &[1, 3, 3, 5]);
    let batch = of(4, &[1, 1, 2, 4, 8, 12]);
    let permille = of(5, &[20, 40, 70, 90, 130, 160, 250, 350, 600]);
    (layer(batch, [channels, filters, side, kernel]), permille)
}

/// A layer in each type, with random filters of several densities.
fn each_type(
    gpu: &Gpu,
    recorder: &Recorder,
    work: &'static str,
    layer: (&ConvShape, &[usize]),
) -> Result<()> {
    table::<I16>(gpu, recorder, (work, "i16"), layer)?;
    table::<I8>(gpu, recorder, (work, "i8"), layer)?;
    table::<F16>(gpu, recorder, (work, "f16"), layer)?;
    table::<f32>(gpu, recorder, (work, "f32"), layer)
}

fn layer(batch: usize, [channels, filters, side, kernel]: [usize; 4]) -> ConvShape {
    ConvShape {
        batch,
        padding: [kernel / 2; 2],
        ..ConvShape::new(channels, [side; 2], filters, [kernel; 2])
    }
}

fn case(work: &'static str, numbers: &'static str, shape: &ConvShape, permille: usize) -> Case {
    Case {
        family: "sparse_conv",
        work,
        shape: Shape::Layer {
            batch: shape.batch,
            channels: shape.channels,
            filters: shape.filters,
            side: shape.size[0],
            kernel: shape.kernel[0],
            permille,
        },
        dtype: Numbers::Named(numbers),
        seed: SEED,
    }
}

/// The source's layer without pooling, over inputs of which 50, 80 and 95 % are zero: whether it pays to skip them.
fn sparse_inputs(gpu: &Gpu, recorder: &Recorder, batch: usize) -> Result<()> {
    let shape = ConvShape {
        batch,
        pool: None,
        ..ConvShape::of_the_source()
    };
    for (work, zeros) in [("zeros_50", 500), ("zeros_80", 800), ("zeros_95", 950)] {
        over_zeros::<I16>(gpu, recorder, (work, "i16"), (&shape, zeros))?;
        over_zeros::<F16>(gpu, recorder, (work, "f16"), (&shape, zeros))?;
        over_zeros::<f32>(gpu, recorder, (work, "f32"), (&shape, zeros))?;
    }
    Ok(())
}

fn over_zeros<E: ConvElement>(
    gpu: &Gpu,
    recorder: &Recorder,
    (work, numbers): (&'static str, &'static str),
    (shape, zeros): (&ConvShape, u16),
) -> Result<()> {
    let case = case(work, numbers, shape, 111);
    if !recorder.wants(&case) {
        return Ok(());
    }
    let inputs = Inputs::<E>::with_zeros(gpu, shape, zeros)?;
    recorder.measure(&case, || {
        Run::new(&inputs, one_a_slice(shape.filter_shape()))?.compare()
    })
}

/// The source's layer: one nonzero a slice, 2 × 2 max pooling, 16-bit integers.
fn source(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    let shape = ConvShape::of_the_source();
    of_source::<I16>(gpu, recorder, "i16", &shape)?;
    of_source::<F16>(gpu, recorder, "f16", &shape)?;
    of_source::<f32>(gpu, recorder, "f32", &shape)
}

fn of_source<E: ConvElement>(
    gpu: &Gpu,
    recorder: &Recorder,
    numbers: &'static str,
    shape: &ConvShape,
) -> Result<()> {
    let named = |work| case(work, numbers, shape, 111);
    let works = [
        "source_cpu1",
        "source_cpu",
        "source_coo",
        "source_packed",
        "source_direct",
    ];
    let rest = [
        "source_staged",
        "source_skip",
        "source_tensor",
        "source_best",
        "source_arrays",
        "source_slices",
    ];
    if !works
        .into_iter()
        .chain(rest)
        .any(|work| recorder.wants(&named(work)))
    {
        return Ok(());
    }
    let inputs = Inputs::new(gpu, shape)?;
    let run = Run::<E>::new(&inputs, one_a_slice(shape.filter_shape()))?;
    recorder.measure(&named("source_cpu1"), || run.on_cpu(1))?;
    recorder.measure(&named("source_cpu"), || run.on_cpu(0))?;
    for (work, strategy) in [
        ("source_coo", Some(ConvStrategy::Coo)),
        ("source_packed", Some(ConvStrategy::Packed)),
        ("source_direct", Some(ConvStrategy::Direct)),
        ("source_staged", Some(ConvStrategy::Staged)),
        ("source_skip", Some(ConvStrategy::Skip)),
        ("source_tensor", Some(ConvStrategy::Tensor)),
        ("source_best", None),
    ] {
        if E::PIECES > 0 || strategy != Some(ConvStrategy::Tensor) {
            recorder.measure(&named(work), || run.time(strategy))?;
        }
    }
    recorder.measure(&named("source_arrays"), || run.with_arrays())?;
    recorder.measure(&named("source_slices"), || run.with_slices())?;
    let many = ConvShape {
        batch: 16,
        ..*shape
    };
    let of_many = case("source_arrays", numbers, &many, 111);
    if !recorder.wants(&of_many) {
        return Ok(());
    }
    let inputs = Inputs::new(gpu, &many)?;
    let run = Run::<E>::new(&inputs, one_a_slice(many.filter_shape()))?;
    recorder.measure(&of_many, || run.with_arrays())
}

/// The strategies of one layer at several densities.
fn table<E: ConvElement>(
    gpu: &Gpu,
    recorder: &Recorder,
    (work, numbers): (&'static str, &'static str),
    (shape, densities): (&ConvShape, &[usize]),
) -> Result<()> {
    let cases = densities
        .iter()
        .map(|permille| (permille, case(work, numbers, shape, *permille)));
    let wanted: Vec<_> = cases.filter(|(_, case)| recorder.wants(case)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let inputs = Inputs::<E>::new(gpu, shape)?;
    for (permille, case) in wanted {
        recorder.measure(&case, || {
            let run = Run::new(&inputs, random(shape.filter_shape(), *permille))?;
            run.compare()
        })?;
    }
    Ok(())
}

/// One nonzero in each slice, at a random place: the source's filters.
fn one_a_slice<V: FilterValue>(shape: FilterShape) -> SparseFilters<V> {
    let places = data::values::<f32>(shape.slices(), SEED + 60);
    let weights = data::values::<f32>(shape.slices(), SEED + 61);
    let size = shape.height * shape.width;
    let nonzero = |(place, weight): (&f32, &f32)| {
        let at = ((f64::from(*place) + 0.5) * size as f64) as usize % size;
        Nonzero {
            row: (at / shape.width) as u8,
            col: (at % shape.width) as u8,
            value: weight_of(*weight),
        }
    };
    let nonzeros = places.iter().zip(&weights).map(nonzero).collect();
    let counts = vec![1; shape.slices()];
    SparseFilters::from_slices(shape, &counts, nonzeros).expect("one nonzero a slice")
}

/// Weights, each kept with a probability in thousandths.
fn random<V: FilterValue>(shape: FilterShape, permille: usize) -> SparseFilters<V> {
    let kept = data::values::<f32>(shape.weights(), SEED + 62);
    let weights = data::values::<f32>(shape.weights(), SEED + 63);
    let weight = |(kept, weight): (&f32, &f32)| {
        let keep = f64::from(*kept) + 0.5 < permille as f64 / 1_000.0;
        if keep {
            weight_of(*weight)
        } else {
            V::default()
        }
    };
    let dense: Vec<V> = kept.iter().zip(&weights).map(weight).collect();
    SparseFilters::from_dense(shape, &dense).expect("sizes of a layer")
}

/// Integers from 1 to 13 and their negatives, so that 32-bit sums of 16-bit inputs are exact up to 4,608 weights of a filter.
fn weight_of<V: FilterValue>(uniform: f32) -> V {
    let magnitude = (f64::from(uniform).abs() * 26.0).ceil().max(1.0);
    V::from_f64(magnitude.copysign(uniform.into()))
}

/// What a layer reads.
struct Inputs<'a, E: ConvElement> {
    gpu: &'a Gpu,
    shape: ConvShape,
    host: Vec<E::Value>,
    x: Maps<E>,
    /// Of a thousand.
    zeros: u16,
}

impl<'a, E: ConvElement> Inputs<'a, E> {
    fn new(gpu: &'a Gpu, shape: &ConvShape) -> Result<Inputs<'a, E>> {
        Inputs::with_zeros(gpu, shape, 0)
    }

    fn with_zeros(gpu: &'a Gpu, shape: &ConvShape, zeros: u16) -> Result<Inputs<'a, E>> {
        // All of the type's range, or small integers, whose sums are exact.
        let most = if E::MOST.is_finite() { E::MOST } else { 8.0 };
        let values = data::values::<f32>(shape.inputs(), SEED + 64);
        let value = |(i, x): (usize, &f32)| {
            let kept = data::uniform(SEED + 65, i) >= f64::from(zeros) / 1e3;
            E::Value::from_f64((f64::from(*x) * 2.0 * most).round() * f64::from(u8::from(kept)))
        };
        let host: Vec<E::Value> = values.par_iter().enumerate().map(value).collect();
        Ok(Inputs {
            gpu,
            shape: *shape,
            x: Maps::upload(&gpu.device, &host)?,
            host,
            zeros,
        })
    }
}

/// A layer with its operands.
struct Run<'a, E: ConvElement> {
    gpu: &'a Gpu,
    shape: ConvShape,
    filters: SparseFilters<E::Value>,
    host: &'a [E::Value],
    x: &'a Maps<E>,
    zeros: u16,
    /// Of the last image.
    expected: Vec<E::Sum>,
}

impl<'a, E: ConvElement> Run<'a, E> {
    fn new(inputs: &'a Inputs<'a, E>, filters: SparseFilters<E::Value>) -> Result<Run<'a, E>> {
        let last = ConvShape {
            batch: 1,
            ..inputs.shape
        };
        let cpu = SparseConv::<E>::new(&Device::cpu(), &last, &filters, Layer::default())?;
        let image = &inputs.host[inputs.host.len() - last.inputs()..];
        Ok(Run {
            gpu: inputs.gpu,
            shape: inputs.shape,
            filters,
            host: &inputs.host,
            x: &inputs.x,
            zeros: inputs.zeros,
            expected: cpu.run_on_host_arrays(image)?,
        })
    }

    fn layer(&self, strategy: Option<ConvStrategy>) -> Result<SparseConv<E>> {
        let layer = Layer {
            strategy,
            zeros: self.zeros,
            ..Layer::default()
        };
        Ok(SparseConv::new(
            &self.gpu.device,
            &self.shape,
            &self.filters,
            layer,
        )?)
    }

    /// On device buffers.
    fn time(&self, strategy: Option<ConvStrategy>) -> Result<Measured> {
        let (plan, times, bytes) = self.times(strategy, &self.gpu.sampler)?;
        let mut measured = self.measured(plan.strategy.to_string(), times, bytes);
        for (strategy, us) in &plan.predicted_us {
            if *strategy == plan.strategy {
                measured.details.insert("predicted_us", *us);
            }
        }
        Ok(measured)
    }

    fn times(
        &self,
        strategy: Option<ConvStrategy>,
        sampler: &Sampler,
    ) -> Result<(ConvPlan, Times, usize)> {
        let conv = self.layer(strategy)?;
        let mut out = self.gpu.device.zeros(self.shape.results())?;
        conv.run(self.x, &mut out)?;
        self.check(&out)?;
        let work = || conv.run(self.x, &mut out);
        let times = sampler.time(&self.gpu.device, work)?;
        let plan = conv.plan().context("a GPU has a plan")?.clone();
        Ok((plan, times, conv.filter_bytes()))
    }

    /// Every strategy that suits, the planner's choice as the case's time. Few samples of each: there are hundreds of
    /// cases.
    fn compare(&self) -> Result<Measured> {
        let sampler = Sampler::brief();
        let plan = self
            .layer(None)?
            .plan()
            .context("a GPU has a plan")?
            .clone();
        let mut chosen = None;
        let mut details = Vec::new();
        let mut best_us = f64::INFINITY;
        for (strategy, predicted_us) in &plan.predicted_us {
            let (_, times, bytes) = self.times(Some(*strategy), &sampler)?;
            best_us = best_us.min(times.median_us);
            let [measured_name, predicted_name] = names(*strategy);
            details.push((measured_name, times.median_us));
            details.push((predicted_name, *predicted_us));
            if *strategy == plan.strategy {
                chosen = Some((times, bytes));
            }
        }
        let (times, bytes) = chosen.context("the planner chooses what it predicts")?;
        let mut measured = self.measured(plan.strategy.to_string(), times, bytes);
        measured.details.extend(details);
        measured
            .details
            .insert("over_best", times.median_us / best_us);
        Ok(measured)
    }

    /// Between page-locked arrays, filters on the device.
    fn with_arrays(&self) -> Result<Measured> {
        let (device, layer) = (&self.gpu.device, Layer::default());
        let mut conv = ArrayConv::<E>::new(device, &self.shape, &self.filters, layer)?;
        conv.inputs().copy_from_slice(self.host);
        let mut times = Vec::new();
        for _ in 0..101 {
            let start = Instant::now();
            conv.run()?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        self.check_last(conv.results())?;
        let bytes = size_of_val(self.host) + size_of_val(conv.results());
        let filter_bytes = conv.layer().filter_bytes();
        let mut measured = self.measured("page-locked".into(), Times::of(times), filter_bytes);
        let link_us = bytes as f64 / device.probe_link(LINK_BYTES)?.pinned_gbs / 1e3;
        measured.details.insert("link_us", link_us);
        let over_link = measured.times.median_us / link_us;
        measured.details.insert("over_link", over_link);
        Ok(measured)
    }

    /// Between ordinary arrays, filters on the device.
    fn with_slices(&self) -> Result<Measured> {
        let conv = self.layer(None)?;
        let mut times = Vec::new();
        for _ in 0..21 {
            let start = Instant::now();
            let found = conv.run_on_host_arrays(self.host)?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
            self.check_last(&found)?;
        }
        Ok(self.measured("slices".into(), Times::of(times), conv.filter_bytes()))
    }

    /// On the CPU with this number of threads, 0 for all.
    fn on_cpu(&self, threads: usize) -> Result<Measured> {
        let cpu = Device::cpu();
        let layer = Layer::default();
        let conv = SparseConv::<E>::new(&cpu, &self.shape, &self.filters, layer)?;
        let x = Maps::upload(&cpu, self.host)?;
        let mut out = cpu.zeros(self.shape.results())?;
        let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
        let mut times = Vec::new();
        for _ in 0..3 {
            let start = Instant::now();
            pool.install(|| conv.run(&x, &mut out))?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        let variant = format!("cpu, {} threads", pool.current_num_threads());
        Ok(self.measured(variant, Times::of(times), conv.filter_bytes()))
    }

    fn measured(&self, variant: String, times: Times, filter_bytes: usize) -> Measured {
        let sums = size_of::<E::Sum>() * self.shape.results();
        let bytes = size_of_val(self.host) + sums + filter_bytes;
        let outputs = (self.shape.sums() / self.shape.filters) as f64;
        let multiply_adds = outputs * self.filters.nnz() as f64;
        let mut measured = Measured::new(variant, times, bytes).with_error(0.0);
        let gmacs = multiply_adds / times.median_us / 1e3;
        measured.details.insert("nonzero_gmacs", gmacs);
        measured.details.insert("density", self.filters.density());
        measured.details.insert("filter_bytes", filter_bytes as f64);
        measured
    }

    /// Compares the last image's results with the CPU's.
    fn check(&self, out: &Buffer<E::Sum>) -> Result<()> {
        let mut found = vec![E::Sum::ZERO; self.expected.len()];
        out.read(out.len() - found.len(), &mut found)?;
        self.check_last(&found)
    }

    fn check_last(&self, found: &[E::Sum]) -> Result<()> {
        let found = &found[found.len() - self.expected.len()..];
        let wrong = found.iter().zip(&self.expected).position(|(a, b)| a != b);
        if let Some(i) = wrong {
            let (found, expected) = (found[i].to_f64(), self.expected[i].to_f64());
            anyhow::bail!("result {i} is {found}, and the CPU's {expected}");
        }
        Ok(())
    }
}

/// Names of a strategy's measured and predicted times.
fn names(strategy: ConvStrategy) -> [&'static str; 2] {
    match strategy {
        ConvStrategy::Coo => ["coo_us", "coo_predicted_us"],
        ConvStrategy::Packed => ["packed_us", "packed_predicted_us"],
        ConvStrategy::Direct => ["direct_us", "direct_predicted_us"],
        ConvStrategy::Staged => ["staged_us", "staged_predicted_us"],
        ConvStrategy::Skip => ["skip_us", "skip_predicted_us"],
        ConvStrategy::Tensor => ["tensor_us", "tensor_predicted_us"],
        ConvStrategy::Lowered => ["lowered_us", "lowered_predicted_us"],
    }
}
