//! What to do about errors whose own message cannot know it: the options of this program, as far as they are not given
//! already.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::device::{CpuDevice, DeviceError};
use crate::io::ReadError;
use crate::learning::FitError;
use crate::ops::OpError;

/// Whether elements are f32 already.
static HALVED: AtomicBool = AtomicBool::new(false);

/// Notes that elements are f32: no advice is to halve them.
pub(super) fn note_halved() {
    HALVED.store(true, Ordering::Relaxed);
}

/// What to do about a cause.
pub(super) fn remedy(cause: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    if let Some(ReadError::Io { source, .. }) = cause.downcast_ref() {
        let missing = source.kind() == ErrorKind::NotFound;
        return missing.then_some("check the path; `-` reads standard input");
    }
    if let Some(ReadError::Width { .. }) = cause.downcast_ref() {
        return Some("use data with the features that the model was trained on");
    }
    if let Some(ReadError::Table { problem, .. }) = cause.downcast_ref() {
        return Some(problem.advice());
    }
    let device = match cause.downcast_ref() {
        Some(FitError::Op(OpError::Device(error))) => Some(error),
        _ => cause.downcast_ref::<DeviceError>(),
    };
    match device? {
        DeviceError::OutOfMemory { held, .. } if held.limit_bytes.is_some() => {
            Some(of_full_share(HALVED.load(Ordering::Relaxed)))
        }
        DeviceError::OutOfMemory { device, .. } => {
            Some(of_full_memory(device == CpuDevice::new().name()))
        }
        DeviceError::NoDevice { .. } => Some("`warpfuse info` lists the devices"),
        _ => None,
    }
}

fn of_full_share(halved: bool) -> &'static str {
    match halved {
        true => "raise the limit in WARPFUSE_GPU_MEMORY",
        false => "raise the limit in WARPFUSE_GPU_MEMORY; `--dtype f32` halves the data",
    }
}

/// What to do where memory does not suffice; allocates nothing.
pub(super) fn of_full_memory(on_cpu: bool) -> &'static str {
    match (HALVED.load(Ordering::Relaxed), on_cpu) {
        (false, true) => "`--dtype f32` halves the data; a sparse format leaves out zeros",
        (true, true) => "a sparse format leaves out zeros; use fewer rows or columns",
        (false, false) => "`--dtype f32` halves the data, `--device cpu` uses main memory",
        (true, false) => "`--device cpu` uses main memory",
    }
}
