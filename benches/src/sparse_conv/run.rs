//! One layer: its filters and inputs, and how its strategies are timed.

use std::time::Instant;

use anyhow::{Context, Result};
use gpu_kernels::sparse_conv::Accumulator as _;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use warpfuse::device::{Buffer, Device};
use warpfuse::matrix::filters::{FilterShape, FilterValue, Nonzero, SparseFilters};
use warpfuse::ops::sparse_conv::{
    ArrayConv, ConvElement, ConvPlan, ConvShape, ConvStrategy, ConvSum, Layer, Maps, SparseConv,
};

use crate::case::SEED;
use crate::data;
use crate::gpu::Gpu;
use crate::record::Measured;
use crate::sampling::{Sampler, Times};

/// Bytes that the link's rate is measured with.
const LINK_BYTES: usize = 1 << 28;

/// One nonzero in each slice, at a random place: the source's filters.
pub(super) fn one_a_slice<V: FilterValue>(shape: FilterShape) -> SparseFilters<V> {
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
pub(super) fn random<V: FilterValue>(shape: FilterShape, permille: usize) -> SparseFilters<V> {
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
pub(super) struct Inputs<'a, E: ConvElement> {
    gpu: &'a Gpu,
    shape: ConvShape,
    host: Vec<E::Value>,
    x: Maps<E>,
    /// Of a thousand.
    zeros: u16,
}

impl<'a, E: ConvElement> Inputs<'a, E> {
    pub(super) fn new(gpu: &'a Gpu, shape: &ConvShape) -> Result<Inputs<'a, E>> {
        Inputs::with_zeros(gpu, shape, 0)
    }

    pub(super) fn with_zeros(gpu: &'a Gpu, shape: &ConvShape, zeros: u16) -> Result<Inputs<'a, E>> {
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
pub(super) struct Run<'a, E: ConvElement> {
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
    pub(super) fn new(
        inputs: &'a Inputs<'a, E>,
        filters: SparseFilters<E::Value>,
    ) -> Result<Run<'a, E>> {
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
    pub(super) fn time(&self, strategy: Option<ConvStrategy>) -> Result<Measured> {
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
    pub(super) fn compare(&self) -> Result<Measured> {
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
    pub(super) fn with_arrays(&self) -> Result<Measured> {
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
    pub(super) fn with_slices(&self) -> Result<Measured> {
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
    pub(super) fn on_cpu(&self, threads: usize) -> Result<Measured> {
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
pub(super) fn names(strategy: ConvStrategy) -> [&'static str; 2] {
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
