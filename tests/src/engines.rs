//! The devices under test.
//!
//! `WARPFUSE_DEVICES` lists them as [`Device`] reads them, such as `cpu,cuda:1`; each of those has to be
//! there. Without it they are `cpu`, an emulator that shuffles and interrupts, `cuda:0`, which may be missing,
//! and [`FURTHER_SCHEDULES`] of the emulator, which run the small cases again. An emulator has few multiprocessors, and those of an
//! H200 where it runs all cases.
//!
//! With `WARPFUSE_TEST_COUNTERS` emulators count what kernels do to memory, and print it at the end.

use warpfuse::device::Device;
use warpfuse::device::emulator::{Counting, Emulator, EmulatorOptions};

use crate::Subset;

/// The schedule of the emulator that runs everything that an emulator runs.
const MAIN_SCHEDULE: u64 = 3;

/// Schedules of the emulators that repeat the small cases: with the main one all eight kinds that
/// [`EmulatorOptions::schedule`] has.
pub const FURTHER_SCHEDULES: [u64; 7] = [0, 1, 2, 4, 5, 6, 7];

/// Multiprocessors of an emulated GPU, of which an H200 has 132. Blocks that have nothing to do take an emulator as long as others,
/// and of small matrices no thread would ever have a second row.
const SMS: u32 = 4;

/// What an engine is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Every test that it can run.
    Main,
    /// What is to be repeated under many orders of blocks and lanes.
    Schedule,
}

/// A device under test.
#[derive(Debug, Clone)]
pub struct Engine {
    /// Its name, such as `cuda:0`.
    pub name: String,
    /// The device, or why there is none.
    pub device: Result<Device, Missing>,
    /// What it is there for.
    pub role: Role,
}

/// Why a device cannot be tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// Nobody requested it: its cases are ignored.
    Optional(String),
    /// It was requested: its cases fail.
    Required(String),
}

impl Engine {
    /// Opens the device of this name.
    fn open(name: &str, missing: fn(String) -> Missing) -> Engine {
        let opened = name.parse::<Device>().and_then(with_kernels);
        Engine {
            name: name.to_owned(),
            device: opened
                .map(small)
                .map(counting)
                .map_err(|error| missing(error.to_string())),
            role: Role::Main,
        }
    }

    /// An emulator that runs everything, or one that repeats the small cases.
    fn emulator(schedule: u64, role: Role) -> Engine {
        Engine {
            role,
            ..Self::open(&format!("emulator:{schedule}"), Missing::Required)
        }
    }

    /// All engines of this run.
    pub fn from_environment() -> Vec<Engine> {
        match std::env::var("WARPFUSE_DEVICES") {
            Ok(list) => Self::required(&list),
            Err(_) => Self::usual(),
        }
    }

    fn usual() -> Vec<Engine> {
        let mut engines = vec![
            Self::open("cpu", Missing::Required),
            Self::emulator(MAIN_SCHEDULE, Role::Main),
            Self::open("cuda:0", Missing::Optional),
        ];
        engines.extend(FURTHER_SCHEDULES.map(|n| Self::emulator(n, Role::Schedule)));
        engines
    }

    /// The engines of a list with commas.
    pub fn required(list: &str) -> Vec<Engine> {
        let names = list
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        names
            .map(|name| Self::open(name, Missing::Required))
            .collect()
    }

    /// For emulators, and for the CPU where cases are large, which take half of some cases: a number that differs between
    /// schedules. With `WARPFUSE_TEST_SUBSET=full` they take all.
    pub fn turn(&self, cases: Subset) -> Option<usize> {
        let device = self.device.as_ref().ok()?;
        match device {
            Device::Emulator(emulator) if Subset::of_cases(device) == Subset::Small => {
                Some(emulator.options().seed as usize)
            }
            Device::Cpu(_) if cases == Subset::Full && !Subset::is_everything_wanted() => Some(0),
            _ => None,
        }
    }

    /// Whether this is, or would be, a GPU.
    pub fn is_cuda(&self) -> bool {
        match &self.device {
            Ok(device) => matches!(device, Device::Cuda(_)),
            Err(_) => self.name.starts_with("cuda"),
        }
    }

    /// Whether compiled entries are launched here; the CPU has code of its own.
    pub fn launches_entries(&self) -> bool {
        !matches!(&self.device, Ok(device) if device.is_cpu())
    }
}

/// An emulator of the same options with few multiprocessors, unless all cases are wanted.
fn small(device: Device) -> Device {
    let has_all_cases = Subset::of_cases(&device) == Subset::Full;
    match device {
        Device::Emulator(plain) if !has_all_cases => {
            Device::Emulator(plain.with_multiprocessors(SMS))
        }
        device => device,
    }
}

/// A GPU without kernels is of no use to a test.
fn with_kernels(device: Device) -> Result<Device, warpfuse::device::DeviceError> {
    if let Device::Cuda(cuda) = &device {
        cuda.check_kernels()?;
    }
    Ok(device)
}

/// An emulator of the same options that counts, if the environment asks for it.
fn counting(device: Device) -> Device {
    match device {
        Device::Emulator(plain) if std::env::var_os("WARPFUSE_TEST_COUNTERS").is_some() => {
            Device::Emulator(Emulator::new(EmulatorOptions {
                counting: Counting::Sites,
                ..*plain.options()
            }))
        }
        device => device,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases_run_under_eight_schedules() {
        let engines = Engine::usual();
        let emulated = |engine: &&Engine| engine.name.starts_with("emulator:");
        let mut names: Vec<_> = engines.iter().filter(emulated).map(|e| &e.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 8);
        let main = engines.iter().filter(emulated);
        assert_eq!(main.filter(|e| e.role == Role::Main).count(), 1);
    }

    #[test]
    fn a_device_that_was_asked_for_has_to_be_there() {
        let engines = Engine::required("cpu, nonsense,");
        assert_eq!(engines.len(), 2);
        assert!(engines[0].device.is_ok() && !engines[0].launches_entries());
        assert!(matches!(&engines[1].device, Err(Missing::Required(_))));
    }
}
