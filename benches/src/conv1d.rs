//! Convolutions on the GPU: short filters against a copy of the device's memory, long ones against its
//! arithmetic.

use anyhow::{Context, Result, ensure};
use warpfuse::device::{Buffer, Device};
use warpfuse::matrix::Dtype;
use warpfuse::ops::conv1d::{Conv1dShape, Conv1dStrategy, Padding, conv1d, conv1d_with};
use warpfuse::plan::conv1d::plan;

use crate::case::{Case, SEED};
use crate::data;
use crate::gpu::Gpu;
use crate::record::{Measured, Recorder};
use crate::shape::Shape;

/// Elements of the signal.
const LENGTH: usize = 1 << 26;
/// Outputs that are compared with the CPU's, at the beginning and the end.
const COMPARED: usize = 1 << 16;
/// Multiply-adds that an SM begins per clock in f32.
const LANES: f64 = 128.0;

/// Name, taps and, if not the planner's, strategy.
const WORKS: [(&str, usize, Option<Conv1dStrategy>); 17] = [
    ("taps3", 3, None),
    ("taps9", 9, None),
    ("taps17", 17, None),
    ("taps33", 33, None),
    ("taps64", 64, None),
    ("taps128", 128, None),
    ("taps1024", 1_024, None),
    ("taps9_naive", 9, Some(Conv1dStrategy::Naive)),
    ("taps9_tiled", 9, Some(Conv1dStrategy::Tiled)),
    ("taps9_window8", 9, Some(Conv1dStrategy::Window8)),
    ("taps9_window16", 9, Some(Conv1dStrategy::Window16)),
    ("taps33_window16", 33, Some(Conv1dStrategy::Window16)),
    ("taps33_strip5", 33, Some(Conv1dStrategy::Strip5)),
    ("taps64_strip3", 64, Some(Conv1dStrategy::Strip3)),
    ("taps128_window16", 128, Some(Conv1dStrategy::Window16)),
    ("taps1024_window8", 1_024, Some(Conv1dStrategy::Window8)),
    ("taps1024_strip5", 1_024, Some(Conv1dStrategy::Strip5)),
];

/// Records all cases of the family.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    let cases = WORKS.map(|(work, ..)| case(work));
    if !cases.iter().any(|case| recorder.wants(case)) {
        return Ok(());
    }
    let signal = match Signal::new(gpu) {
        Ok(signal) => signal,
        Err(reason) => return recorder.fail(&cases, &reason),
    };
    for (case, (_, taps, strategy)) in cases.iter().zip(WORKS) {
        recorder.measure(case, || signal.convolve(taps, strategy))?;
    }
    Ok(())
}

fn case(work: &'static str) -> Case {
    Case {
        family: "conv1d",
        work,
        shape: Shape::Vector { len: LENGTH },
        dtype: Dtype::F32.into(),
        seed: SEED,
    }
}

/// A signal in host memory and on the GPU, and what copying it takes.
struct Signal<'a> {
    gpu: &'a Gpu,
    host: Vec<f32>,
    x: Buffer<f32>,
    copy_gbs: f64,
}

impl<'a> Signal<'a> {
    fn new(gpu: &'a Gpu) -> Result<Signal<'a>> {
        let host = data::values::<f32>(LENGTH, SEED + 50);
        let x = gpu.device.upload(&host)?;
        let mut copy = gpu.device.zeros::<f32>(LENGTH)?;
        let times = gpu.sampler.time(&gpu.device, || copy.copy_from(&x))?;
        Ok(Signal {
            gpu,
            host,
            x,
            copy_gbs: times.gbs(2 * LENGTH * size_of::<f32>()),
        })
    }

    fn convolve(&self, taps: usize, strategy: Option<Conv1dStrategy>) -> Result<Measured> {
        let shape = Conv1dShape {
            padding: Padding::Same,
            ..Conv1dShape::single(LENGTH, taps)
        };
        let taps_on_host = data::values::<f32>(taps, SEED + 51);
        let filter = self.gpu.device.upload(&taps_on_host)?;
        let mut out = self.gpu.device.zeros::<f32>(LENGTH)?;
        let mut run = || match strategy {
            Some(strategy) => conv1d_with(strategy, &shape, &self.x, &filter, &mut out),
            None => conv1d(&shape, &self.x, &filter, &mut out),
        };
        run()?;
        let times = self.gpu.sampler.time(&self.gpu.device, run)?;
        self.check(&taps_on_host, &out)?;
        let bytes = 2 * LENGTH * size_of::<f32>();
        let limits = self.gpu.device.limits().context("a GPU has limits")?;
        let used = strategy.unwrap_or_else(|| plan(&shape, 4, limits).strategy);
        let mut measured = Measured::new(format!("{used:?}"), times, bytes)
            .with_ceiling(self.copy_gbs)
            .with_error(0.0);
        let flops = 2.0 * LENGTH as f64 * taps as f64;
        let gflops = flops / times.median_us / 1e3;
        measured.details.insert("gflops", gflops);
        let peak = self.peak_gflops()?;
        measured
            .details
            .insert("fraction_of_fp32_peak", gflops / peak);
        Ok(measured)
    }

    /// Both ends of the result, to the last bit.
    fn check(&self, filter: &[f32], out: &Buffer<f32>) -> Result<()> {
        let cpu = Device::cpu();
        let filter_on_cpu = cpu.upload(filter)?;
        for start in [0, LENGTH - COMPARED] {
            let end = start + COMPARED;
            let shape = Conv1dShape {
                padding: Padding::Same,
                ..Conv1dShape::single(COMPARED, filter.len())
            };
            let mut expected = cpu.zeros::<f32>(COMPARED)?;
            let x = cpu.upload(&self.host[start..end])?;
            conv1d(&shape, &x, &filter_on_cpu, &mut expected)?;
            let mut found = vec![0.0; COMPARED];
            out.read(start, &mut found)?;
            // Where the cut piece has zeros the signal goes on.
            let inside = if start == 0 {
                0..COMPARED - filter.len()
            } else {
                filter.len()..COMPARED
            };
            let expected = expected.to_vec()?;
            ensure!(
                found[inside.clone()] == expected[inside],
                "other bits than the CPU's"
            );
        }
        Ok(())
    }

    /// Two operations for each multiply-add of every lane at the highest clock.
    fn peak_gflops(&self) -> Result<f64> {
        let limits = self.gpu.device.limits().context("a GPU has limits")?;
        // An H200's boost clock; the driver tells none that is reached under load.
        const BOOST_GHZ: f64 = 1.98;
        Ok(f64::from(limits.sms) * LANES * 2.0 * BOOST_GHZ)
    }
}
