//! One buffer as input and output of a launch.

use gpu_kernels::stream::{Stream, StreamArgs};
use warpfuse::device::{Buffer, DeviceError, Prepared};

fn launch(kernel: &Prepared<Stream<f32>>, x: &mut Buffer<f32>) -> Result<(), DeviceError> {
    kernel.launch(StreamArgs {
        x: x.input(),
        total: x.output(),
    })
}

fn main() {}
