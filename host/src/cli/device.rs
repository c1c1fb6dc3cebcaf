//! Opening the device that `--device` names.

use anyhow::{Context, Result};

use super::args::DeviceName;
use super::progress::Ui;
use crate::device::{Choice, Device, DeviceError, Emulator, EmulatorOptions};

/// Opens a device.
///
/// # Errors
/// When a device that was asked for by name cannot be used.
pub(super) fn open(name: DeviceName, ui: &Ui) -> Result<Device> {
    let device = match name {
        DeviceName::Auto => automatic(ui),
        DeviceName::Cpu => Device::cpu(),
        DeviceName::Cuda(ordinal) => Device::cuda(ordinal)
            .and_then(with_kernels)
            .with_context(|| format!("cannot use the device {name}"))?,
        DeviceName::Emulator(schedule) => {
            Device::Emulator(Emulator::open(None, EmulatorOptions::schedule(schedule))?)
        }
    };
    tracing::info!(device = %device, name = device.name(), "device opened");
    Ok(device)
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
