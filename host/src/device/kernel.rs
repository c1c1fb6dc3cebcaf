//! Prepared launches: a compiled entry and a launch shape, checked once, tied to the entry's argument
//! type.

use std::fmt;

use gpu_kernels::{Entry, Family, Launch};

use super::cuda::{Attributes, PreparedFunction};
use super::{Device, DeviceError};

/// An entry of family `F` that is ready to be launched on one device.
///
/// Launching is safe: the argument type is the kernel's own, its arrays borrow [`Buffer`]s, and the
/// kernel's contract is checked before every launch. It returns before the kernel has run; everything
/// that is later done to the buffers, freeing included, happens after it, because a device has one
/// stream.
///
/// [`Buffer`]: super::Buffer
pub struct Prepared<F: Family> {
    function: PreparedFunction,
    entry: &'static Entry<F>,
}

impl Device {
    /// Looks an entry up in the device's kernels and checks a launch shape against it: threads, blocks,
    /// shared memory (above the default of 48 KB too), size of the argument.
    ///
    /// # Errors
    /// [`DeviceError::Contract`] when the device or the compiled kernel does not allow the shape,
    /// [`DeviceError::NoKernels`], [`DeviceError::UnsupportedArch`] or [`DeviceError::NoEntry`] when
    /// there is no such kernel, [`DeviceError::Unsupported`] on the CPU, which has its own code.
    pub fn prepare<F: Family>(
        &self,
        entry: &'static Entry<F>,
        launch: Launch,
    ) -> Result<Prepared<F>, DeviceError> {
        match self {
            Device::Cuda(device) => {
                let function = device.prepare(entry.name, launch, size_of::<F::Args<'static>>())?;
                Ok(Prepared { function, entry })
            }
            Device::Cpu(device) => Err(DeviceError::Unsupported {
                what: "launch a kernel",
                device: device.name().to_owned(),
                why: "compiled kernels run on CUDA devices only",
            }),
        }
    }
}

impl<F: Family> Prepared<F> {
    /// Checks the arguments against the kernel's contract and submits the launch.
    ///
    /// # Errors
    /// [`DeviceError::Contract`] when the arguments break the contract, [`DeviceError::Driver`] when the
    /// driver refuses the launch or an earlier one failed.
    pub fn launch(&self, args: F::Args<'_>) -> Result<(), DeviceError> {
        F::check(self.entry, &self.function.shape(), &args).map_err(|violation| {
            DeviceError::Contract {
                kernel: self.entry.name.to_owned(),
                required: format!(
                    "{} {} {}",
                    violation.what, violation.rule, violation.required
                ),
                given: violation.given.to_string(),
            }
        })?;
        // SAFETY: the family's argument type is that of the entry, whose contract holds. Arrays in it
        // borrow buffers, which are initialised, as long as they say, and freed only after the stream
        // has passed this launch; an output is borrowed mutably, and whatever touches it later is
        // submitted to the same stream.
        unsafe { self.function.launch(&args) }
    }

    /// The entry.
    pub fn entry(&self) -> &'static Entry<F> {
        self.entry
    }

    /// The launch shape.
    pub fn shape(&self) -> Launch {
        self.function.shape()
    }

    /// Registers, shared and local memory of the compiled kernel.
    pub fn attributes(&self) -> Attributes {
        self.function.attributes()
    }

    /// Blocks of this launch that one SM holds at once, as the driver reckons.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver does not say.
    pub fn blocks_per_sm(&self) -> Result<u32, DeviceError> {
        self.function.blocks_per_sm()
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
