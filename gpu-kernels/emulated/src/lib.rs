//! Every kernel body of `gpu-kernels`, compiled for the emulator: once, here, and nowhere else.
//!
//! A body is generic over its [`Cta`](gpu_kernels::Cta), so whoever names [`Family::run`] for the emulator's threads
//! compiles all bodies of that family: 10,000 functions for all families. Generic code that launches kernels must not name
//! it. It asks [`body`] for a function pointer instead, which is compiled already.
//!
//! ```
//! use gpu_kernels::stream::{Stream, StreamArgs};
//! use gpu_kernels::{Family, Launch};
//! use gpu_kernels_emulated::body;
//! use gpu_kernels_emulator::{Emulator, EmulatorOptions};
//!
//! let emulator = Emulator::new(EmulatorOptions::default());
//! let x = emulator.upload("x", &[1.0_f32; 256])?;
//! let total = emulator.upload("total", &[0.0_f32])?;
//! let shape = Launch { grid: 1, block: 32, shared_bytes: 0 };
//! let args = StreamArgs { x: x.input(), total: total.output() };
//! let entry = &Stream::<f32>::entries()[0];
//! emulator.launch_body(entry, &shape, &args, body())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::any::Any;

use gpu_kernels::{Entry, Family};
use gpu_kernels_emulator::{Body, Thread};

/// One family's body, of a type by which it is found.
struct Compiled<F: Family>(Body<F>);

/// The function that runs one thread of a family's entries on the emulator.
pub fn body<F: Family>() -> Body<F> {
    all()
        .iter()
        .find_map(|compiled| compiled.downcast_ref::<Compiled<F>>())
        .expect("a family has to be in `for_each_family!`, which lists the bodies too")
        .0
}

type Bodies = [&'static (dyn Any + Send + Sync)];

macro_rules! bodies {
    ($( $family:ty; )*) => {
        /// Not generic, and so compiled in this crate.
        #[inline(never)]
        fn all() -> &'static Bodies {
            static BODIES: &Bodies = &[$( &Compiled::<$family>(run::<$family>) ),*];
            BODIES
        }
    };
}

gpu_kernels::for_each_family!(bodies);

fn run<F: Family>(entry: &Entry<F>, thread: &Thread<'_>, args: &F::Args<'_>) {
    F::run(entry, thread, args);
}
