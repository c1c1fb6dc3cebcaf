//! Launching one function with one argument struct.

use std::ffi::c_void;
use std::sync::Arc;

use gpu_kernels::Launch;

use super::driver::check;
use super::module::Function;
use super::{Attributes, CudaDevice};
use crate::device::error::DeviceError;
use crate::device::loader::newer::{CUlaunchAttribute, CUlaunchConfig, cuLaunchKernelEx};
use crate::device::loader::symbols::{cuLaunchKernel, cuOccupancyMaxActiveBlocksPerMultiprocessor};

/// Most blocks of a one-dimensional grid, on every device since compute capability 3.0.
const MAX_GRID: u32 = i32::MAX as u32;

/// The attributes of a launch in clusters of this many blocks. Kernels compiled for 9.0 or later wait for the launch before them by
/// themselves, so that their blocks may be there when it ends; older ones know of neither.
fn attributes(device: &CudaDevice, cluster: u32) -> Vec<CUlaunchAttribute> {
    let overlaps = device.has_clusters().then(CUlaunchAttribute::overlapping);
    let cluster = (cluster > 1).then(|| CUlaunchAttribute::cluster(cluster));
    cluster.into_iter().chain(overlaps).collect()
}

/// A function and a launch shape that the device accepts.
#[derive(Debug, Clone)]
pub(crate) struct PreparedFunction {
    device: CudaDevice,
    function: Arc<Function>,
    kernel: &'static str,
    launch: Launch,
    /// Blocks of a cluster.
    cluster: u32,
    attributes: Vec<CUlaunchAttribute>,
}

impl CudaDevice {
    /// Looks a kernel up and checks a launch shape, the blocks of a cluster, and the size of its argument against it.
    pub(crate) fn prepare(
        &self,
        kernel: &'static str,
        (launch, cluster): (Launch, u32),
        argument_bytes: usize,
    ) -> Result<PreparedFunction, DeviceError> {
        let function = self.loader()?.function(kernel)?;
        let prepared = PreparedFunction {
            device: self.clone(),
            function,
            kernel,
            launch,
            cluster,
            attributes: attributes(self, cluster),
        };
        prepared.check_shape()?;
        prepared.check_shared()?;
        prepared.check_argument(argument_bytes)?;
        prepared
            .function
            .allow_dynamic_shared(launch.shared_bytes)?;
        Ok(prepared)
    }

    /// What a compiled kernel uses and allows.
    ///
    /// # Errors
    /// As [`CudaDevice::check_kernels`], and [`DeviceError::NoEntry`] when the module lacks the kernel.
    pub fn attributes(&self, kernel: &'static str) -> Result<Attributes, DeviceError> {
        Ok(*self.loader()?.function(kernel)?.attributes())
    }
}

impl PreparedFunction {
    /// The launch shape.
    pub(crate) fn shape(&self) -> Launch {
        self.launch
    }

    /// What the function uses and allows.
    pub(crate) fn attributes(&self) -> Attributes {
        *self.function.attributes()
    }

    /// Blocks of this launch that one SM holds at once.
    pub(crate) fn blocks_per_sm(&self) -> Result<u32, DeviceError> {
        self.device.enter()?;
        let mut blocks = 0;
        // SAFETY: the pointer is writable, the function's module is loaded.
        let result = unsafe {
            cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                self.function.raw(),
                self.launch.block.cast_signed(),
                self.launch.shared_bytes as usize,
            )
        };
        check("cuOccupancyMaxActiveBlocksPerMultiprocessor", result)?;
        Ok(blocks.unsigned_abs())
    }

    /// Submits the launch to the device's stream and returns at once.
    ///
    /// # Safety
    /// `A` is the type of the kernel's only parameter, and launching with `args` breaks no promise of
    /// the kernel: its memory is on this device, stays allocated until the stream has passed the launch,
    /// and suffices for what the kernel reads and writes.
    pub(crate) unsafe fn launch<A: Copy>(&self, args: &A) -> Result<(), DeviceError> {
        self.device.enter()?;
        let Launch {
            grid,
            block,
            shared_bytes,
        } = self.launch;
        let mut parameters = [std::ptr::from_ref(args).cast_mut().cast::<c_void>()];
        if !self.attributes.is_empty() {
            // SAFETY: as below.
            return unsafe { self.launch_with_attributes(&mut parameters) };
        }
        // SAFETY: the driver copies the parameter, whose size was compared with the kernel's, before it
        // returns; the rest is promised by the caller.
        let result = unsafe {
            cuLaunchKernel(
                self.function.raw(),
                grid,
                1,
                1,
                block,
                1,
                1,
                shared_bytes,
                self.device.raw_stream(),
                parameters.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        check("cuLaunchKernel", result)
    }

    /// Submits the launch with its attributes.
    ///
    /// # Safety
    /// As [`PreparedFunction::launch`], `parameters` being one pointer to the argument.
    unsafe fn launch_with_attributes(
        &self,
        parameters: &mut [*mut c_void; 1],
    ) -> Result<(), DeviceError> {
        let config = CUlaunchConfig {
            grid: [self.launch.grid, 1, 1],
            block: [self.launch.block, 1, 1],
            shared_mem_bytes: self.launch.shared_bytes,
            stream: self.device.raw_stream(),
            // The driver reads them only.
            attributes: self.attributes.as_ptr().cast_mut(),
            attribute_count: self.attributes.len() as u32,
        };
        // SAFETY: configuration and attributes live until the call returns, and the driver copies them and the
        // parameter before; the rest is promised by the caller.
        let result = unsafe {
            cuLaunchKernelEx(
                &raw const config,
                self.function.raw(),
                parameters.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        check("cuLaunchKernelEx", result)
    }

    fn check_shape(&self) -> Result<(), DeviceError> {
        let Launch { grid, block, .. } = self.launch;
        if self.cluster > 1 && !self.device.has_clusters() {
            let required =
                "kernels compiled for compute capability 9.0, where blocks form clusters";
            return Err(self.violation(required.to_owned(), "older ones".to_owned()));
        }
        let most = self.function.attributes().max_threads_per_block;
        if block == 0 || block > most {
            return Err(
                self.violation(format!("1 to {most} threads per block"), format!("{block}"))
            );
        }
        if grid == 0 || grid > MAX_GRID {
            return Err(self.violation(format!("1 to {MAX_GRID} blocks"), format!("{grid}")));
        }
        Ok(())
    }

    fn check_shared(&self) -> Result<(), DeviceError> {
        let fixed = self.function.attributes().static_shared_bytes;
        let most = self.device.limits().shared_per_block.saturating_sub(fixed);
        if self.launch.shared_bytes > most {
            let given = format!("{} bytes", self.launch.shared_bytes);
            return Err(self.violation(
                format!("at most {most} bytes of dynamic shared memory per block on this device"),
                given,
            ));
        }
        Ok(())
    }

    fn check_argument(&self, bytes: usize) -> Result<(), DeviceError> {
        match self.function.parameter_bytes() {
            Some(compiled) if compiled != bytes => Err(self.violation(
                format!("an argument of {compiled} bytes, as it was compiled"),
                format!("{bytes} bytes"),
            )),
            _ => Ok(()),
        }
    }

    fn violation(&self, required: String, given: String) -> DeviceError {
        DeviceError::Contract {
            kernel: self.kernel.to_owned(),
            required,
            given,
        }
    }
}
