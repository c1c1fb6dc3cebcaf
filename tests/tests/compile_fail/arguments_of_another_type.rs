//! f32 arguments, handed to an f64 kernel.

use gpu_kernels::vector::{VectorArgs, Vectors};
use warpfuse::device::{DeviceError, Prepared};

fn launch(kernel: &Prepared<Vectors<f64>>, args: VectorArgs<'_, f32>) -> Result<(), DeviceError> {
    kernel.launch(args)
}

fn main() {}
