//! Devices: mechanism only. Driver, streams, events, buffers, prepared launches.
//!
//! This room knows neither matrices nor algorithms. A [`Device`] is a CUDA device, the CPU, or an emulator
//! that runs the GPU's kernels on the CPU and checks them; a [`Buffer`] lies on one; a [`Prepared`]
//! kernel is an entry with a launch shape that was checked once.
//!
//! ```
//! use warpfuse::device::Device;
//!
//! let device: Device = "auto".parse()?;
//! let mut x = device.upload(&[1.0_f32, 2.0, 3.0])?;
//! x.copy_from_slice(&[4.0, 5.0, 6.0])?;
//! assert_eq!(x.read_scalar(2)?, 6.0);
//! # Ok::<(), warpfuse::device::DeviceError>(())
//! ```

pub mod buffer;
pub mod calibration;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
// Without the feature a type of the same name and methods that has no values: nobody else needs a cfg.
#[cfg(not(feature = "cuda"))]
#[path = "cuda_absent.rs"]
pub mod cuda;
pub mod embedded;
pub mod emulator;
pub mod error;
pub mod event;
pub(crate) mod exchange;
pub(crate) mod feed;
pub mod group;
mod holding;
mod host_memory;
#[cfg(any(feature = "cuda", test))]
mod host_pages;
pub mod kernel;
mod lent;
pub mod libraries;
mod link;
#[cfg(feature = "cuda")]
pub(crate) mod loader;
pub mod memory;
pub mod phases;
pub(crate) mod pinned;
mod readback;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "long copies of the CUDA device")
)]
mod staging;
mod system;
pub mod tuned;
pub mod usage;

use std::fmt;
use std::str::FromStr;

pub use buffer::{Buffer, SharedBuffer};
pub use calibration::{Calibration, CalibrationError, Subject};
pub use cpu::CpuDevice;
pub use cuda::CudaDevice;
pub use emulator::{Emulator, EmulatorOptions};
pub use error::DeviceError;
pub use event::{Timer, time};
pub use holding::{Holder, Holding};
pub use kernel::Prepared;
pub use link::LinkProbe;
pub use memory::{Candidate, EvictionPolicy, MemoryOptions, NextUse};
pub use phases::{Phase, PhaseCost, Phases};
pub use readback::Readback;
pub use usage::Usage;

use self::memory::Ledger;
use crate::plan::limits::DeviceLimits;
use crate::plan::work::Work;

/// Device memory that is left to the driver: modules, local memory, and what libraries beside this one take.
const DRIVERS_OWN: usize = 512 << 20;

/// A place where buffers lie and work is done. Clones are the same device.
#[derive(Clone, Debug)]
pub enum Device {
    /// An NVIDIA GPU.
    Cuda(CudaDevice),
    /// The processor of this machine.
    Cpu(CpuDevice),
    /// A GPU emulated by the processor, which checks every access of its kernels.
    Emulator(Emulator),
}

/// A device that was chosen automatically, and why.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The device.
    pub device: Device,
    /// Why it is not a CUDA device; `None` where it is one.
    pub no_cuda: Option<DeviceError>,
}

/// Free and total memory of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MemoryInfo {
    /// Bytes that could be allocated now.
    pub free_bytes: usize,
    /// Bytes that the device has.
    pub total_bytes: usize,
}

impl Device {
    /// The first CUDA device on which this program's kernels run, or else the CPU. Never fails.
    pub fn auto() -> Device {
        Device::auto_with_reason().device
    }

    /// [`Device::auto`], or the CPU at once where a GPU is not worth the start of its driver: a quarter of a second on an
    /// H200.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::plan::work::Work;
    /// let predictions = Work { bytes: 100_000, reads: 1 };
    /// assert!(Device::auto_for(&predictions).is_cpu());
    /// ```
    pub fn auto_for(work: &Work) -> Device {
        if work
            .seconds(rayon::current_num_threads())
            .is_faster_on_cpu()
        {
            return Device::cpu();
        }
        Device::auto()
    }

    /// As [`Device::auto`], with the reason where the CPU was taken.
    pub fn auto_with_reason() -> Choice {
        match CudaDevice::open(0).and_then(|device| device.check_kernels().map(|()| device)) {
            Ok(device) => Choice {
                device: Device::Cuda(device),
                no_cuda: None,
            },
            Err(reason) => Choice {
                device: Device::cpu(),
                no_cuda: Some(reason),
            },
        }
    }

    /// CUDA device number `ordinal`, counted from 0 as the driver does.
    ///
    /// Opening a device that is already open gives the same device: one stream, one loaded module.
    ///
    /// # Errors
    /// [`DeviceError::NoDriver`] without a driver, [`DeviceError::NoDevice`] without such a device.
    /// Missing kernels are reported by the first [`Device::prepare`].
    pub fn cuda(ordinal: u32) -> Result<Device, DeviceError> {
        CudaDevice::open(ordinal).map(Device::Cuda)
    }

    /// The processor of this machine.
    pub fn cpu() -> Device {
        Device::Cpu(CpuDevice::new())
    }

    /// The processor as one member of a group that shares the rows of every [`Matrix`](crate::ops::Matrix): each member
    /// makes it of its own rows, and it stands for those of all, one member's after another's. Vectors of m elements hold
    /// one for every row of all members.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::device::group::run_threads;
    /// use warpfuse::learning::Ridge;
    /// use warpfuse::matrix::Features;
    ///
    /// let rows = [array![[0.0], [1.0]], array![[2.0]]];
    /// let slopes = run_threads(2, |group| {
    ///     let (own, targets) = (rows[group.rank()].clone(), [0.0, 2.0, 4.0]);
    ///     let model = Ridge::params().alpha(2.0).fit(&Device::cpu_of(&group), Features::Dense(own), &targets)?;
    ///     Ok::<_, warpfuse::learning::FitError>(model.coef()[0])
    /// });
    /// for slope in slopes {
    ///     assert!((slope? - 1.0).abs() < 1e-6);
    /// }
    /// # Ok::<(), warpfuse::learning::FitError>(())
    /// ```
    pub fn cpu_of(group: &group::Group) -> Device {
        Device::Cpu(CpuDevice::of(group.clone()))
    }

    /// This device as that of a member of a group, as [`Device::cpu_of`] for any device: each member brings its own. GPUs
    /// are joined by NCCL, which is opened now; emulators, which have no link, by the group itself.
    ///
    /// Every member has to call it, with devices of one kind.
    ///
    /// ```
    /// # #[cfg(feature = "emulator")] {
    /// use warpfuse::device::group::run_threads;
    /// use warpfuse::device::{Device, EmulatorOptions};
    /// use warpfuse::learning::Ridge;
    /// use warpfuse::matrix::Features;
    ///
    /// let rows = [ndarray::array![[0.0], [1.0]], ndarray::array![[2.0]]];
    /// let slopes = run_threads(2, |group| {
    ///     let device = Device::emulator(EmulatorOptions::default()).in_group(&group)?;
    ///     let own = Features::Dense(rows[group.rank()].clone());
    ///     let model = Ridge::params().alpha(2.0).fit(&device, own, &[0.0, 2.0, 4.0])?;
    ///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(model.coef()[0])
    /// });
    /// for slope in slopes {
    ///     assert!((slope.unwrap() - 1.0).abs() < 1e-6);
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GroupError::Nccl`](group::GroupError::Nccl) where GPUs are to be joined and NCCL is not found, and as every
    /// collective.
    pub fn in_group(&self, group: &group::Group) -> Result<Device, group::GroupError> {
        if group.is_alone() {
            return Ok(self.alone());
        }
        group.join(self)?;
        let group = group.clone();
        Ok(match self {
            Device::Cuda(device) => Device::Cuda(device.member(Some(group))),
            Device::Cpu(_) => Device::Cpu(CpuDevice::of(group)),
            Device::Emulator(device) => Device::Emulator(device.member(Some(group))),
        })
    }

    /// The same device, of no group.
    pub(crate) fn alone(&self) -> Device {
        match self {
            Device::Cuda(device) => Device::Cuda(device.member(None)),
            Device::Cpu(device) if device.group().is_alone() => Device::Cpu(device.clone()),
            Device::Cpu(_) => Device::cpu(),
            Device::Emulator(device) => Device::Emulator(device.member(None)),
        }
    }

    /// The group whose members share the rows of matrices on this device; `None` where there is one process.
    pub fn group(&self) -> Option<&group::Group> {
        let group = match self {
            Device::Cpu(device) => Some(device.group()),
            Device::Cuda(device) => device.group(),
            Device::Emulator(device) => device.group(),
        };
        group.filter(|group| !group.is_alone())
    }

    /// An emulated GPU; see [`emulator`].
    #[cfg(feature = "emulator")]
    pub fn emulator(options: EmulatorOptions) -> Device {
        Device::Emulator(Emulator::new(options))
    }

    /// An emulated GPU of four multiprocessors: rows that one thread has several of are rare among small matrices otherwise.
    #[cfg(all(test, feature = "emulator"))]
    pub(crate) fn small_emulator(options: EmulatorOptions) -> Device {
        Device::Emulator(Emulator::new(options).with_multiprocessors(4))
    }

    /// The device's name as its driver or operating system gives it.
    pub fn name(&self) -> &str {
        match self {
            Device::Cuda(device) => device.name(),
            Device::Cpu(device) => device.name(),
            Device::Emulator(device) => device.name(),
        }
    }

    /// What a launch model has to know; `None` for the CPU.
    pub fn limits(&self) -> Option<&DeviceLimits> {
        match self {
            Device::Cuda(device) => Some(device.limits()),
            Device::Cpu(_) => None,
            Device::Emulator(device) => Some(device.limits()),
        }
    }

    /// Whether kernels may be launched here in clusters of blocks, which reach each other's shared memory.
    pub fn has_clusters(&self) -> bool {
        match self {
            Device::Cuda(device) => device.has_clusters(),
            Device::Cpu(_) => false,
            Device::Emulator(device) => device.limits().has_clusters(),
        }
    }

    /// Fails unless PTX that is made while the program runs can be loaded here.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] on the CPU and the emulator.
    pub(crate) fn expect_ptx(&self) -> Result<(), DeviceError> {
        match self {
            Device::Cuda(_) => Ok(()),
            Device::Cpu(_) | Device::Emulator(_) => Err(DeviceError::Unsupported {
                what: "load a generated kernel",
                device: self.to_string(),
                why: "PTX runs on a CUDA device; name one, such as `cuda:0`",
            }),
        }
    }

    /// Loads a kernel of the program's own making, for launches of an entry of this name, which the PTX has; bytes of local memory
    /// of a thread.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] with the driver's words where it refuses the PTX; as [`Device::expect_ptx`].
    pub(crate) fn load_ptx(&self, entry: &'static str, ptx: String) -> Result<u32, DeviceError> {
        self.expect_ptx()?;
        match self {
            Device::Cuda(device) => {
                device.load_ptx(entry, ptx)?;
                Ok(device.attributes(entry)?.local_bytes)
            }
            Device::Cpu(_) | Device::Emulator(_) => Ok(0),
        }
    }

    /// Waits until everything submitted so far has ended.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when an earlier launch or copy failed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        match self {
            Device::Cuda(device) => device.synchronize(),
            Device::Cpu(_) | Device::Emulator(_) => Ok(()),
        }
    }

    /// Free and total memory; `None` where nobody says.
    pub fn memory_info(&self) -> Option<MemoryInfo> {
        match self {
            Device::Cuda(device) => device.memory_info().ok(),
            Device::Cpu(device) => device.memory_info(),
            Device::Emulator(_) => None,
        }
    }

    /// Sets how much its buffers may hold from now on. What they hold stays, and nothing is added until it fits.
    ///
    /// All handles of one device share the limit.
    pub fn limit_memory(&self, options: MemoryOptions) {
        self.ledger().limit(options);
    }

    /// Has the `operations`-th allocation, copy or (on an emulator) launch from now on fail, once: an allocation as if there
    /// were no memory, the others with [`DeviceError::Injected`]. For tests of what programs do then. Returns what was
    /// requested before and has not come.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// let device = Device::cpu();
    /// device.fail_after(Some(2));
    /// assert!(device.upload(&[1.0]).is_err()); // an allocation and a copy
    /// assert!(device.upload(&[1.0]).is_ok());
    /// ```
    pub fn fail_after(&self, operations: Option<u64>) -> Option<u64> {
        self.ledger().fail_after(operations)
    }

    /// How much its buffers may hold.
    pub fn memory_options(&self) -> MemoryOptions {
        self.ledger().options()
    }

    /// Bytes that could be allocated now: below the limit, and free on the device; `None` on the CPU, and where nobody says.
    pub(crate) fn room(&self) -> Option<usize> {
        let left = self.ledger().left();
        match self {
            Device::Cpu(_) => None,
            Device::Emulator(_) => left,
            Device::Cuda(device) => {
                let free = device.memory_info().ok()?.free_bytes;
                let free = (free + device.ledger().freeable()).saturating_sub(DRIVERS_OWN);
                Some(left.map_or(free, |left| left.min(free)))
            }
        }
    }

    /// The account of its memory.
    pub(crate) fn ledger(&self) -> &Ledger {
        match self {
            Device::Cuda(device) => device.ledger(),
            Device::Cpu(device) => device.ledger(),
            Device::Emulator(device) => device.ledger(),
        }
    }

    /// Bytes that this device's buffers hold, and that were copied to and from them.
    pub fn usage(&self) -> Usage {
        match self {
            Device::Cuda(device) => device.usage(),
            Device::Cpu(device) => device.usage(),
            Device::Emulator(device) => device.usage(),
        }
    }

    /// The CUDA version that the driver supports, such as 13000 for 13.0; `None` without a driver.
    pub fn driver_version(&self) -> Option<u32> {
        match self {
            Device::Cuda(device) => Some(device.driver_version()),
            Device::Cpu(_) | Device::Emulator(_) => None,
        }
    }

    /// Whether a buffer of `other` can be used together with one of this device.
    pub fn shares_memory_with(&self, other: &Device) -> bool {
        match (self, other) {
            (Device::Cuda(a), Device::Cuda(b)) => a.ordinal() == b.ordinal(),
            (Device::Cpu(_), Device::Cpu(_)) => true,
            (Device::Emulator(a), Device::Emulator(b)) => a.is_same_as(b),
            _ => false,
        }
    }

    /// Whether this is the CPU itself, with code of its own instead of kernels.
    pub fn is_cpu(&self) -> bool {
        matches!(self, Device::Cpu(_))
    }

    /// Rows at whose multiples those of a member of a group begin on such a device: kernels read its part of a vector where it
    /// lies.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// assert_eq!(Device::cpu().row_step(), 1);
    /// ```
    pub fn row_step(&self) -> usize {
        if self.is_cpu() { 1 } else { 64 }
    }
}

/// The name under which [`Device::from_str`] finds such a device: `cpu`, `cuda:N` or `emulator:N`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cuda(device) => write!(f, "cuda:{}", device.ordinal()),
            Device::Cpu(_) => f.write_str("cpu"),
            Device::Emulator(device) => write!(f, "emulator:{}", device.options().seed),
        }
    }
}

/// Opens the device that a text names: `auto`, `cpu`, `cuda` (device 0), `cuda:N`, `emulator`
/// (everything in order), `emulator:N` ([schedule](EmulatorOptions::schedule) N) or `emulator:N:M` (the same with M multiprocessors).
impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Device, DeviceError> {
        let unknown = || DeviceError::UnknownDevice {
            text: text.to_owned(),
        };
        match text.split_once(':') {
            None => match text {
                "auto" => Ok(Device::auto()),
                "cpu" => Ok(Device::cpu()),
                "cuda" => Device::cuda(0),
                "emulator" => {
                    Emulator::open(None, EmulatorOptions::default()).map(Device::Emulator)
                }
                _ => Err(unknown()),
            },
            Some(("cuda", number)) => Device::cuda(number.parse().map_err(|_| unknown())?),
            Some(("emulator", numbers)) => {
                let (schedule, sms) = emulated(numbers).ok_or_else(unknown)?;
                let emulator = Emulator::open(None, EmulatorOptions::schedule(schedule))?;
                Ok(Device::Emulator(match sms {
                    Some(sms) => emulator.with_multiprocessors(sms),
                    None => emulator,
                }))
            }
            Some(_) => Err(unknown()),
        }
    }
}

/// The schedule and, if there is one, the number of multiprocessors of `N` or `N:M`.
fn emulated(numbers: &str) -> Option<(u64, Option<u32>)> {
    let Some((schedule, sms)) = numbers.split_once(':') else {
        return Some((numbers.parse().ok()?, None));
    };
    let sms = sms
        .parse()
        .ok()
        .filter(|sms| (1..=MOST_EMULATED).contains(sms))?;
    Some((schedule.parse().ok()?, Some(sms)))
}

/// Multiprocessors of an emulator at most; no GPU has as many.
const MOST_EMULATED: u32 = 1_024;

#[cfg(test)]
mod tests;
