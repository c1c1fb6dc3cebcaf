//! Record mode: every case of every family.

use std::time::Duration;

use anyhow::{Context, Result};
use warpfuse::device::{Calibration, Device, Subject};

use crate::gpu::Gpu;
use crate::options::Options;
use crate::provenance::Provenance;
use crate::record::Recorder;
use crate::sampling::Sampler;
use crate::{cg, cpu, fused, objective, parser, plan, softmax, vector};

/// What is said where there is no GPU.
pub const NO_GPU: &str = "no GPU is measured";

/// Records what was requested: the families of the GPU where there is one, and those of the CPU.
///
/// # Errors
/// When a result cannot be written. Cases that fail are results.
pub fn record(options: &Options) -> Result<()> {
    let sampler = Sampler::new(options.budget_ms);
    let processor = Provenance::of(&Device::cpu());
    let recorder = match gpu() {
        Ok(device) => {
            let recorder = Recorder::new(options, Provenance::of(&device))?;
            record_gpu(&Gpu::new(device, sampler), &recorder)?;
            recorder.with(processor)
        }
        Err(reason) => {
            eprintln!("{NO_GPU}: {reason}");
            Recorder::new(options, processor)?
        }
    };
    cpu::record(&recorder, &sampler)?;
    parser::record(&recorder, &sampler)
}

/// Records one family of the GPU alone; what a benchmark of that family's name does.
///
/// # Errors
/// When there is no GPU, or a result cannot be written.
pub fn record_family(
    arguments: impl IntoIterator<Item = String>,
    family: impl FnOnce(&Gpu, &Recorder) -> Result<()>,
) -> Result<()> {
    let options = Options::parse(arguments).map_err(anyhow::Error::msg)?;
    let Some(options) = options else {
        eprintln!("nothing is recorded; {}", crate::options::USAGE);
        return Ok(());
    };
    let device = gpu().context(NO_GPU)?;
    let recorder = Recorder::new(&options, Provenance::of(&device))?;
    family(
        &Gpu::new(device, Sampler::new(options.budget_ms)),
        &recorder,
    )
}

/// Records how long choosing takes, and on a GPU how good the choices are.
///
/// # Errors
/// When a result cannot be written.
pub fn record_plans(arguments: impl IntoIterator<Item = String>) -> Result<()> {
    let options = Options::parse(arguments).map_err(anyhow::Error::msg)?;
    let Some(options) = options else {
        eprintln!("nothing is recorded; {}", crate::options::USAGE);
        return Ok(());
    };
    let processor = Provenance::of(&Device::cpu());
    let device = match gpu() {
        Ok(device) => device,
        Err(reason) => {
            eprintln!("{NO_GPU}: {reason}");
            return plan::record_choosing(&Recorder::new(&options, processor)?);
        }
    };
    let recorder = Recorder::new(&options, Provenance::of(&device))?;
    if let Some(seed) = options.drawn {
        let gpu = Gpu::new(calibrated(device)?, Sampler::brief());
        let most = options.seconds.map(Duration::from_secs);
        return plan::drawn::record(&gpu, &recorder, seed, most);
    }
    plan::record_choosing(&recorder.with(processor))?;
    plan::record(&Gpu::new(device, Sampler::brief()), &recorder)
}

/// A GPU with the rates that `warpfuse calibrate` keeps, which are measured where there are none.
fn calibrated(device: Device) -> Result<Device> {
    let subject = Subject::of(&device).context("a GPU has a driver")?;
    if Calibration::load(&subject)?.is_none() {
        Calibration::of(&device)?.store()?;
    }
    // Rates are read when a device is opened.
    drop(device);
    gpu()
}

/// The first GPU on which this program's kernels run.
///
/// # Errors
/// With what is missing.
pub fn gpu() -> Result<Device> {
    let device = Device::cuda(0)?;
    if let Device::Cuda(cuda) = &device {
        cuda.check_kernels()?;
    }
    Ok(device)
}

fn record_gpu(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    fused::record(gpu, recorder)?;
    objective::record(gpu, recorder)?;
    softmax::record(gpu, recorder)?;
    vector::record(gpu, recorder)?;
    cg::record(gpu, recorder)
}
