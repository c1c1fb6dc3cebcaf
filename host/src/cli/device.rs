//! Opening the device that `--device` names.

use anyhow::{Context, Result};

use super::args::DeviceName;
use crate::device::Device;

/// Opens a device. With `auto` and no usable GPU it is the CPU, and `-v` says why.
///
/// # Errors
/// When a device that was asked for by name cannot be used.
pub(super) fn open(name: DeviceName) -> Result<Device> {
    let device = match name {
        DeviceName::Auto => automatic(),
        DeviceName::Cpu => Device::cpu(),
        DeviceName::Cuda(ordinal) => Device::cuda(ordinal)
            .and_then(with_kernels)
            .with_context(|| format!("cannot use the device {name}"))?,
    };
    tracing::info!(device = %device, name = device.name(), "device opened");
    Ok(device)
}

fn automatic() -> Device {
    let choice = Device::auto_with_reason();
    if let Some(reason) = &choice.no_cuda {
        tracing::info!(%reason, "no GPU is used");
    }
    choice.device
}

/// A GPU without kernels is found out here, before any data are read.
fn with_kernels(device: Device) -> Result<Device, crate::device::DeviceError> {
    if let Device::Cuda(cuda) = &device {
        cuda.check_kernels()?;
    }
    Ok(device)
}
