//! A kernel's output from a buffer that is only borrowed.

use gpu_kernels::stream::{Stream, StreamArgs};
use warpfuse::device::{Buffer, DeviceError, Prepared};

fn launch(
    kernel: &Prepared<Stream<f32>>,
    x: &Buffer<f32>,
    total: &Buffer<f32>,
) -> Result<(), DeviceError> {
    kernel.launch(StreamArgs {
        x: x.input(),
        total: total.output(),
    })
}

fn main() {}
