//! Arguments of a vector kernel, handed to a stream kernel.

use gpu_kernels::stream::Stream;
use gpu_kernels::vector::VectorArgs;
use warpfuse::device::{DeviceError, Prepared};

fn launch(kernel: &Prepared<Stream<f32>>, args: VectorArgs<'_, f32>) -> Result<(), DeviceError> {
    kernel.launch(args)
}

fn main() {}
