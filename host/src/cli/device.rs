//! Opening the device that `--device` names.

use std::panic::resume_unwind;
use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use super::args::DeviceName;
use super::data::Loaded;
use super::output;
use super::progress::Ui;
use super::targets::Known;
use crate::device::{
    Choice, Device, DeviceError, Emulator, EmulatorOptions, MemoryOptions, Phase, PhaseCost,
    Phases, tuned,
};
use crate::matrix::Features;
use crate::ops::{MatrixOptions, Number, predicted_places};
use crate::plan::alternatives::FitPlace;
use crate::plan::tuned::Dropped;
use crate::plan::work::Work;

/// Reads of X by a fit of a linear model: 12 to 894 were recorded, 87 in the geometric mean.
pub(super) const FIT_READS: u64 = 90;

/// Opens a device.
///
/// # Errors
/// When a device that was requested by name cannot be used.
pub(super) fn open(name: DeviceName, ui: &Ui) -> Result<Device> {
    if name != DeviceName::Cpu {
        tuned::check_file()?;
    }
    let device = match name {
        DeviceName::Auto => automatic(ui),
        DeviceName::Cpu => Device::cpu(),
        DeviceName::Cuda(ordinal) => Device::cuda(ordinal)
            .and_then(with_kernels)
            .with_context(|| format!("cannot use the device {name}"))?,
        DeviceName::Emulator(schedule) => {
            let emulator = Emulator::open(None, EmulatorOptions::schedule(schedule))?;
            let device = Device::Emulator(emulator);
            device.limit_memory(MemoryOptions::from_environment()?);
            if let Some(path) = tuned::file() {
                device.read_tuned(&path)?;
            }
            device
        }
    };
    if let Some(table) = device.tuned() {
        tell_of_table(table.dropped(), ui);
    }
    tracing::info!(device = %device, name = device.name(), "device opened");
    if let Device::Cuda(cuda) = &device
        && cuda.compiles_kernels().unwrap_or(false)
    {
        ui.remark(format_args!(
            "this program has no machine code for {}: its driver compiles each kernel at its first use, and keeps it",
            device.name()
        ));
    }
    Ok(device)
}

/// Entries of the table of tuned launches that do not count.
pub(super) fn tell_of_table(Dropped { foreign, damaged }: Dropped, ui: &Ui) {
    if damaged > 0 {
        ui.warn(format_args!(
            "the table of tuned launches has {damaged} that were changed and do not count; tune again"
        ));
    }
    if foreign > 0 {
        ui.remark(format_args!(
            "the table of tuned launches has {foreign} of other GPUs, drivers or versions, which do not count"
        ));
    }
}

/// [`open`], but that `auto` is the CPU where the data at `path`, read `reads` times, are not worth the start of a GPU.
///
/// # Errors
/// As [`open`].
pub(super) fn open_for(name: DeviceName, path: &Path, reads: u64, ui: &Ui) -> Result<Device> {
    if name == DeviceName::Auto
        && let Some(bytes) = bytes_of(path)
    {
        let seconds = Work { bytes, reads }.seconds(rayon::current_num_threads());
        if seconds.is_faster_on_cpu() {
            tracing::info!(%seconds, "no driver is started");
            return open(DeviceName::Cpu, ui);
        }
    }
    open(name, ui)
}

/// The bytes of a file, which are about those of what is in it; `None` where that is not known before it is read.
fn bytes_of(path: &Path) -> Option<u64> {
    let is_compressed = ["gz", "zst", "npz"].contains(&output::extension(path).as_str());
    let file = std::fs::metadata(path).ok();
    let file = file.filter(|file| file.is_file() && !is_compressed);
    file.map(|file| file.len())
}

/// What was read, and what is known of its targets and rows.
type Data<T> = (Loaded<T>, Known<T>);

/// Opens a device while `read` reads: a driver takes as long to start as a gigabyte takes to read.
///
/// # Errors
/// As [`open_for`], which comes first, and as `read`.
pub(super) fn open_beside<R: Number>(
    (name, path, reads): (DeviceName, &Path, u64),
    ui: &Ui,
    phases: &mut Phases,
    read: impl FnOnce() -> Result<Data<R>> + Send,
) -> Result<(Device, Data<R>)> {
    let begun = Instant::now();
    let opened = || {
        (
            open_for(name, path, reads, ui),
            begun.elapsed().as_secs_f64(),
        )
    };
    let ((device, open_seconds), data) = thread::scope(|scope| {
        let opening = scope.spawn(opened);
        let data = read();
        let opened = opening.join();
        (opened.unwrap_or_else(|panic| resume_unwind(panic)), data)
    });
    let (device, data) = (device?, data?);
    let device = unless_it_streams(name, device, (&data.0.features, reads), ui);
    let of_seconds = |seconds| PhaseCost {
        seconds,
        ..PhaseCost::default()
    };
    phases.add(Phase::Open, of_seconds(open_seconds));
    let read = PhaseCost {
        read_bytes: data.0.bytes,
        ..of_seconds(data.0.seconds)
    };
    phases.add(Phase::Read, read);
    Ok((device, data))
}

/// The device, or the CPU instead of one that `auto` has found, where X does not fit the GPU and reads of it are predicted
/// to be faster on the CPU than through the link.
fn unless_it_streams<R: Number>(
    name: DeviceName,
    device: Device,
    (features, reads): (&Features<R>, u64),
    ui: &Ui,
) -> Device {
    if name != DeviceName::Auto || device.is_cpu() {
        return device;
    }
    let fit = predicted_places(&device, features, reads, MatrixOptions::default());
    let Some(fit) = fit.filter(|fit| !fit.resident().fits) else {
        return device;
    };
    let best = fit.alternatives()[0];
    if best.place != FitPlace::Cpu {
        return device;
    }
    ui.remark(format_args!(
        "the data do not fit the GPU, and the CPU reads them faster: {:.0} ms a pass, {:.0} through the link; --device {device} \
         takes the GPU",
        1e3 * best.pass_seconds,
        1e3 * fit.streaming().pass_seconds
    ));
    Device::cpu()
}

/// The first usable GPU, else the CPU. A GPU that is there and of no use is worth a remark; that there is
/// none is not.
fn automatic(ui: &Ui) -> Device {
    let Choice { device, no_cuda } = Device::auto_with_reason();
    match no_cuda {
        None => {}
        Some(reason @ (DeviceError::NoDriver { .. } | DeviceError::NoDevice { .. })) => {
            tracing::info!(%reason, "no GPU is used");
        }
        Some(reason) => ui.remark(format_args!("the GPU is not used: {reason}")),
    }
    device
}

/// A GPU without kernels is found out here, before any data are read.
fn with_kernels(device: Device) -> Result<Device, DeviceError> {
    if let Device::Cuda(cuda) = &device {
        cuda.check_kernels()?;
    }
    Ok(device)
}
