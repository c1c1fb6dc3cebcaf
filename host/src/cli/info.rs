//! `warpfuse info`: devices, their limits, and what this program was built with.

use anyhow::Result;
use serde::Serialize;

use super::args::InfoArgs;
use super::exit::Exit;
use super::output;
use super::report::{Listing, bytes};
use crate::device::{CpuDevice, CudaDevice, Device, DeviceError, embedded, libraries};
use crate::plan::limits::DeviceLimits;

/// Prints what there is.
pub(super) fn run(args: &InfoArgs) -> Result<Exit> {
    let info = Info::collect(args.libraries);
    if args.json {
        output::print_json(&info)?;
    } else {
        output::print(info.text())?;
    }
    Ok(Exit::Success)
}

#[derive(Serialize)]
struct Info {
    version: &'static str,
    cpu: Cpu,
    cuda: Cuda,
    kernels: Kernels,
    libraries: Vec<Library>,
}

#[derive(Serialize)]
struct Cpu {
    name: String,
    threads: usize,
    simd: &'static str,
    free_bytes: Option<usize>,
    total_bytes: Option<usize>,
}

#[derive(Serialize)]
struct Cuda {
    /// Why there is no device.
    missing: Option<String>,
    devices: Vec<Gpu>,
}

#[derive(Serialize)]
struct Gpu {
    device: String,
    name: String,
    driver: Option<String>,
    kernels: String,
    free_bytes: Option<usize>,
    total_bytes: Option<usize>,
    /// What buffers may hold at once, by --gpu-memory or the environment.
    limit_bytes: Option<usize>,
    limits: Option<DeviceLimits>,
}

#[derive(Serialize)]
struct Kernels {
    /// Why none are embedded, and what to do.
    missing: Option<&'static str>,
    images: Vec<Image>,
}

#[derive(Serialize)]
struct Image {
    arch: &'static str,
    kernels: usize,
    machine_code: bool,
    ptx: bool,
}

#[derive(Serialize)]
struct Library {
    purpose: &'static str,
    /// The name under which the dynamic linker found it.
    found: Option<&'static str>,
}

impl Info {
    fn collect(peers: bool) -> Info {
        let wanted = if peers {
            &libraries::KNOWN[..]
        } else {
            &libraries::KNOWN[..1]
        };
        Info {
            version: env!("CARGO_PKG_VERSION"),
            cpu: Cpu::collect(),
            cuda: Cuda::collect(),
            kernels: Kernels::collect(),
            libraries: wanted
                .iter()
                .map(|library| Library {
                    purpose: library.purpose,
                    found: library.find(),
                })
                .collect(),
        }
    }

    fn text(&self) -> String {
        let mut lines = Listing::new();
        lines.line("cpu", self.cpu.line());
        if let Some(reason) = &self.cuda.missing {
            lines.line("cuda", format_args!("none: {reason}"));
        }
        for gpu in &self.cuda.devices {
            gpu.add_to(&mut lines);
        }
        self.kernels.add_to(&mut lines);
        for library in &self.libraries {
            lines.line(library.purpose, library.found.unwrap_or("not found"));
        }
        format!("warpfuse {}\n{lines}", self.version)
    }
}

impl Cpu {
    fn collect() -> Cpu {
        let device = CpuDevice::new();
        let memory = device.memory_info();
        Cpu {
            name: device.name().to_owned(),
            threads: device.threads(),
            simd: simd(),
            free_bytes: memory.map(|memory| memory.free_bytes),
            total_bytes: memory.map(|memory| memory.total_bytes),
        }
    }

    fn line(&self) -> String {
        let memory = memory(self.free_bytes, self.total_bytes);
        format!(
            "{}, {} threads, {}, {memory}",
            self.name, self.threads, self.simd
        )
    }
}

impl Cuda {
    fn collect() -> Cuda {
        let devices = CudaDevice::count().and_then(|count| match count {
            0 => Err(DeviceError::NoDevice { ordinal: 0, count }),
            _ => (0..count).map(Gpu::collect).collect::<Result<Vec<_>, _>>(),
        });
        match devices {
            Ok(devices) => Cuda {
                missing: None,
                devices,
            },
            Err(reason) => Cuda {
                missing: Some(reason.to_string()),
                devices: Vec::new(),
            },
        }
    }
}

impl Gpu {
    fn collect(ordinal: u32) -> Result<Gpu, DeviceError> {
        let cuda = CudaDevice::open(ordinal)?;
        let kernels = match cuda.kernels() {
            Ok(origin) => origin.to_owned(),
            Err(reason) => format!("none: {reason}"),
        };
        let device = Device::Cuda(cuda);
        let memory = device.memory_info();
        Ok(Gpu {
            device: device.to_string(),
            name: device.name().to_owned(),
            driver: device
                .driver_version()
                .map(|v| format!("CUDA {}.{}", v / 1000, v % 1000 / 10)),
            kernels,
            free_bytes: memory.map(|memory| memory.free_bytes),
            total_bytes: memory.map(|memory| memory.total_bytes),
            limit_bytes: device.memory_options().limit_bytes,
            limits: device.limits().cloned(),
        })
    }

    fn add_to(&self, lines: &mut Listing) {
        let driver = self.driver.as_deref().unwrap_or("unknown");
        let memory = memory(self.free_bytes, self.total_bytes);
        lines.line(
            &self.device,
            format_args!("{}, driver for {driver}, {memory}", self.name),
        );
        if let Some(limit) = self.limit_bytes {
            let limit = bytes(limit as u64);
            lines.line("", format_args!("buffers hold at most {limit}"));
        }
        lines.line("", format_args!("kernels: {}", self.kernels));
        if let Some(limits) = &self.limits {
            for line in limit_lines(limits) {
                lines.line("", line);
            }
        }
    }
}

fn limit_lines(limits: &DeviceLimits) -> [String; 5] {
    let kib = |count: u32| bytes(count.into());
    [
        format!(
            "compute capability {}, {} SMs",
            limits.compute_capability, limits.sms
        ),
        format!(
            "per SM: {} registers, {} shared memory, {} threads, {} blocks",
            limits.registers_per_sm,
            kib(limits.shared_per_sm),
            limits.max_threads_per_sm,
            limits.max_blocks_per_sm
        ),
        format!(
            "per block: {} shared memory, {} threads",
            kib(limits.shared_per_block),
            limits.max_threads_per_block
        ),
        format!(
            "L2 cache {}, memory {:.0} GB/s",
            bytes(limits.l2_bytes),
            limits.memory_bandwidth_gbs
        ),
        format!("rates {}", limits.rates.source),
    ]
}

impl Kernels {
    fn collect() -> Kernels {
        Kernels {
            missing: embedded::missing(),
            images: embedded::images().iter().map(Image::of).collect(),
        }
    }

    fn add_to(&self, lines: &mut Listing) {
        if let Some(reason) = self.missing {
            lines.line("kernels", format_args!("none: {reason}"));
        }
        for image in &self.images {
            let form = match (image.machine_code, image.ptx) {
                (true, true) => "machine code and PTX",
                (true, false) => "machine code",
                (false, _) => "PTX",
            };
            lines.line(
                "kernels",
                format_args!("{} for {}, {form}", image.kernels, image.arch),
            );
        }
    }
}

impl Image {
    fn of(image: &'static embedded::Image) -> Image {
        Image {
            arch: image.arch,
            kernels: image.kernels().len(),
            machine_code: image.has(embedded::Form::MachineCode),
            ptx: image.has(embedded::Form::Ptx),
        }
    }
}

fn memory(free: Option<usize>, total: Option<usize>) -> String {
    match (free, total) {
        (Some(free), Some(total)) => {
            format!("{} of {} free", bytes(free as u64), bytes(total as u64))
        }
        _ => "memory unknown".to_owned(),
    }
}

/// The instructions that the CPU device's passes are dispatched to.
fn simd() -> &'static str {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    match pulp::Arch::new() {
        pulp::Arch::V4(_) => return "AVX-512",
        pulp::Arch::V3(_) => return "AVX2 with FMA",
        _ => {}
    }
    if cfg!(target_arch = "aarch64") {
        "NEON"
    } else {
        "no vector instructions"
    }
}
