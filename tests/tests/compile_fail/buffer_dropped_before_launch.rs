//! A buffer that is freed while arguments still name it.

use gpu_kernels::stream::{Stream, StreamArgs};
use warpfuse::device::{Buffer, DeviceError, Prepared};

fn launch(
    kernel: &Prepared<Stream<f32>>,
    x: Buffer<f32>,
    mut total: Buffer<f32>,
) -> Result<(), DeviceError> {
    let args = StreamArgs {
        x: x.input(),
        total: total.output(),
    };
    drop(x);
    kernel.launch(args)
}

fn main() {}
