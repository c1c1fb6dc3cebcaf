//! An f32 entry, prepared as an f64 kernel.

use gpu_kernels::vector::Vectors;
use gpu_kernels::{Family, Launch};
use warpfuse::device::{Device, DeviceError, Prepared};

fn prepare(device: &Device, shape: Launch) -> Result<Prepared<Vectors<f64>>, DeviceError> {
    device.prepare(&Vectors::<f32>::entries()[0], shape)
}

fn main() {}
