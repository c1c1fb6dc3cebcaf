//! Prepared launches: a compiled entry and a launch shape, checked once, tied to the entry's argument
//! type.

use std::fmt;

use gpu_kernels::{Entry, Family, Launch, Violation};

use super::cuda::{Attributes, PreparedFunction};
use super::{Device, DeviceError, Emulator};

/// An entry of family `F` that is ready to be launched on one device.
///
/// Launching is safe: the argument type is the kernel's own, its arrays borrow [`Buffer`]s, and the
/// kernel's contract is checked before every launch. It returns before the kernel has run; everything
/// that is later done to the buffers, freeing included, happens after it, because a device has one
/// stream. On an emulator it returns when the kernel has run.
///
/// ```
/// use gpu_kernels::stream::{Stream, StreamArgs};
/// use warpfuse::device::{Buffer, DeviceError, Prepared};
///
/// fn launch(
///     kernel: &Prepared<Stream<f32>>,
///     x: Buffer<f32>,
///     mut total: Buffer<f32>,
/// ) -> Result<(), DeviceError> {
///     let args = StreamArgs { x: x.input(), total: total.output() };
///     kernel.launch(args)
/// }
/// ```
///
/// # What the compiler refuses
/// A buffer that is freed while arguments still name it:
///
/// ```compile_fail,E0505
/// # use gpu_kernels::stream::{Stream, StreamArgs};
/// # use warpfuse::device::{Buffer, DeviceError, Prepared};
/// # fn launch(
/// #     kernel: &Prepared<Stream<f32>>,
/// #     x: Buffer<f32>,
/// #     mut total: Buffer<f32>,
/// # ) -> Result<(), DeviceError> {
/// let args = StreamArgs { x: x.input(), total: total.output() };
/// drop(x);
/// kernel.launch(args)
/// # }
/// ```
///
/// One buffer as input and output of a launch:
///
/// ```compile_fail,E0502
/// # use gpu_kernels::stream::{Stream, StreamArgs};
/// # use warpfuse::device::{Buffer, DeviceError, Prepared};
/// # fn launch(kernel: &Prepared<Stream<f32>>, x: &mut Buffer<f32>) -> Result<(), DeviceError> {
/// kernel.launch(StreamArgs { x: x.input(), total: x.output() })
/// # }
/// ```
///
/// An output from a buffer that is only borrowed:
///
/// ```compile_fail,E0596
/// # use gpu_kernels::stream::{Stream, StreamArgs};
/// # use warpfuse::device::{Buffer, DeviceError, Prepared};
/// # fn launch(
/// #     kernel: &Prepared<Stream<f32>>,
/// #     x: Buffer<f32>,
/// #     total: &Buffer<f32>,
/// # ) -> Result<(), DeviceError> {
/// kernel.launch(StreamArgs { x: x.input(), total: total.output() })
/// # }
/// ```
///
/// Arguments of another family, or of the same family for another element type:
///
/// ```compile_fail,E0308
/// # use gpu_kernels::stream::Stream;
/// # use gpu_kernels::vector::VectorArgs;
/// # use warpfuse::device::{DeviceError, Prepared};
/// fn launch(kernel: &Prepared<Stream<f32>>, args: VectorArgs<'_, f32>) -> Result<(), DeviceError> {
///     kernel.launch(args)
/// }
/// ```
///
/// ```compile_fail,E0308
/// # use gpu_kernels::vector::{VectorArgs, Vectors};
/// # use warpfuse::device::{DeviceError, Prepared};
/// fn launch(kernel: &Prepared<Vectors<f64>>, args: VectorArgs<'_, f32>) -> Result<(), DeviceError> {
///     kernel.launch(args)
/// }
/// ```
///
/// [`Buffer`]: super::Buffer
pub struct Prepared<F: Family> {
    function: Function,
    entry: &'static Entry<F>,
}

/// What runs the entry.
#[derive(Debug, Clone)]
enum Function {
    Cuda(PreparedFunction),
    Emulated { emulator: Emulator, shape: Launch },
}

impl Device {
    /// Looks an entry up in the device's kernels and checks a launch shape against it: threads, blocks, clusters of blocks,
    /// shared memory (above the default of 48 KB too), size of the argument.
    ///
    /// ```
    /// use gpu_kernels::vector::Vectors;
    /// use gpu_kernels::{Family, Launch};
    /// use warpfuse::device::{Device, DeviceError, Prepared};
    ///
    /// fn prepare(device: &Device, shape: Launch) -> Result<Prepared<Vectors<f32>>, DeviceError> {
    ///     device.prepare(&Vectors::<f32>::entries()[0], shape)
    /// }
    /// ```
    ///
    /// An entry of another family, or for another element type, does not compile:
    ///
    /// ```compile_fail,E0308
    /// # use gpu_kernels::vector::Vectors;
    /// # use gpu_kernels::{Family, Launch};
    /// # use warpfuse::device::{Device, DeviceError, Prepared};
    /// fn prepare(device: &Device, shape: Launch) -> Result<Prepared<Vectors<f64>>, DeviceError> {
    ///     device.prepare(&Vectors::<f32>::entries()[0], shape)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`DeviceError::Contract`] when the device or the compiled kernel does not allow the shape,
    /// [`DeviceError::NoKernels`], [`DeviceError::UnsupportedArch`] or [`DeviceError::NoEntry`] when
    /// there is no such kernel, [`DeviceError::Unsupported`] on the CPU, which has its own code;
    /// [`DeviceError::Fault`] when an emulated device does not allow the shape.
    pub fn prepare<F: Family>(
        &self,
        entry: &'static Entry<F>,
        launch: Launch,
    ) -> Result<Prepared<F>, DeviceError> {
        let cluster = entry.description.cluster;
        if cluster > 1 {
            Violation::multiple_of("grid", cluster.into(), launch.grid.into())
                .map_err(|violation| broken(entry.name, violation))?;
        }
        match self {
            Device::Cuda(device) => {
                let bytes = size_of::<F::Args<'static>>();
                let function = device.prepare(entry.name, (launch, cluster), bytes)?;
                let function = Function::Cuda(function);
                Ok(Prepared { function, entry })
            }
            Device::Emulator(emulator) => {
                emulator.check_limits(entry, &launch)?;
                let (emulator, shape) = (emulator.clone(), launch);
                let function = Function::Emulated { emulator, shape };
                Ok(Prepared { function, entry })
            }
            Device::Cpu(device) => Err(DeviceError::Unsupported {
                what: "launch a kernel",
                device: device.name().to_owned(),
                why: "kernels run on CUDA devices and on the emulator only",
            }),
        }
    }
}

impl Device {
    /// Calls `work` for 0 to `parts` − 1, with launches that need nothing of each other's: on a CUDA device those of each part go to a
    /// stream of their own. They begin when all that was submitted before has ended, and what is submitted afterwards waits for
    /// them. Elsewhere they run in order.
    ///
    /// The device that `work` gets is for launches alone: buffers that it makes would be freed out of order.
    pub(crate) fn at_once<E: From<DeviceError>>(
        &self,
        parts: usize,
        mut work: impl FnMut(usize, &Device) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Device::Cuda(device) if parts > 1 => {
                device.at_once(parts, |part, side| work(part, &Device::Cuda(side)))
            }
            _ => (0..parts).try_for_each(|part| work(part, self)),
        }
    }
}

impl<F: Family> Prepared<F> {
    /// Checks the arguments against the kernel's contract and submits the launch.
    ///
    /// # Errors
    /// [`DeviceError::Contract`] when the arguments break the contract, [`DeviceError::Driver`] when the
    /// driver refuses the launch or an earlier one failed, [`DeviceError::Fault`] when the emulator finds
    /// the kernel wrong.
    pub fn launch(&self, args: F::Args<'_>) -> Result<(), DeviceError> {
        F::check(self.entry, &self.shape(), &args)
            .map_err(|violation| broken(self.entry.name, violation))?;
        let function = match &self.function {
            Function::Cuda(function) => function,
            Function::Emulated { emulator, shape } => {
                emulator.ledger().check("launch a kernel")?;
                emulator.launch(self.entry, shape, &args)?;
                return Ok(());
            }
        };
        // SAFETY: the family's argument type is that of the entry, whose contract holds. Arrays in it
        // borrow buffers, which are initialised, as long as they say, and freed only after the stream
        // has passed this launch; an output is borrowed mutably, and whatever touches it later is
        // submitted to the same stream, or to one that has waited for it (`at_once`).
        unsafe { function.launch(&args) }
    }

    /// The entry.
    pub fn entry(&self) -> &'static Entry<F> {
        self.entry
    }

    /// The launch shape.
    pub fn shape(&self) -> Launch {
        match &self.function {
            Function::Cuda(function) => function.shape(),
            Function::Emulated { shape, .. } => *shape,
        }
    }

    /// Registers, shared and local memory of the compiled kernel; `None` on an emulator, which compiles
    /// none.
    pub fn attributes(&self) -> Option<Attributes> {
        match &self.function {
            Function::Cuda(function) => Some(function.attributes()),
            Function::Emulated { .. } => None,
        }
    }

    /// Blocks of this launch that one SM holds at once, as the driver reckons.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver does not say, [`DeviceError::Unsupported`] on an emulator.
    pub fn blocks_per_sm(&self) -> Result<u32, DeviceError> {
        match &self.function {
            Function::Cuda(function) => function.blocks_per_sm(),
            Function::Emulated { emulator, .. } => Err(DeviceError::Unsupported {
                what: "reckon resident blocks",
                device: emulator.name().to_owned(),
                why: "it has no compiled kernels, hence no registers to reckon with",
            }),
        }
    }
}

fn broken(kernel: &'static str, violation: Violation) -> DeviceError {
    let Violation {
        what,
        rule,
        required,
        given,
    } = violation;
    DeviceError::Contract {
        kernel: kernel.to_owned(),
        required: format!("{what} {rule} {required}"),
        given: given.to_string(),
    }
}

impl<F: Family> Clone for Prepared<F> {
    fn clone(&self) -> Prepared<F> {
        Prepared {
            function: self.function.clone(),
            entry: self.entry,
        }
    }
}

impl<F: Family> fmt::Debug for Prepared<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({}, {:?})", self.entry.name, self.shape())
    }
}
