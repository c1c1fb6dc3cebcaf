//! Tables of known devices: data sheets, tuning guides and what the drivers report.

use super::limits::{AllocationUnits, ComputeCapability, DeviceLimits};
use super::rates::Rates;

const KIB: u32 = 1024;

/// Hopper with the SM count and bandwidth of its largest parts.
fn hopper(name: &str, memory_bandwidth_gbs: f64, l2_bytes: u64, rates: Rates) -> DeviceLimits {
    let compute_capability = ComputeCapability { major: 9, minor: 0 };
    let units = AllocationUnits::of(compute_capability);
    DeviceLimits {
        name: name.to_owned(),
        compute_capability,
        sms: 132,
        registers_per_sm: 65_536,
        registers_per_block: 65_536,
        max_registers_per_thread: 255,
        register_allocation_unit: units.registers,
        warp_allocation_granularity: units.warps,
        shared_per_sm: 228 * KIB,
        shared_per_block: 227 * KIB,
        shared_per_block_default: 48 * KIB,
        shared_reserved_per_block: KIB,
        shared_allocation_unit: units.shared_bytes,
        unified_cache_bytes: 256 * KIB,
        max_threads_per_block: 1_024,
        max_threads_per_sm: 2_048,
        max_warps_per_sm: 64,
        max_blocks_per_sm: 32,
        warp_size: 32,
        l2_bytes,
        memory_bandwidth_gbs,
        rates,
    }
}

/// H200 SXM, 141 GB of HBM3e.
pub(super) fn h200() -> DeviceLimits {
    hopper("NVIDIA H200", 4_800.0, 60 << 20, Rates::h200())
}

/// H100 SXM, 80 GB of HBM3.
pub(super) fn h100() -> DeviceLimits {
    hopper("NVIDIA H100 SXM", 3_352.0, 50 << 20, Rates::h100())
}

/// A100 SXM, 80 GB of HBM2e.
pub(super) fn a100() -> DeviceLimits {
    DeviceLimits {
        compute_capability: ComputeCapability { major: 8, minor: 0 },
        sms: 108,
        shared_per_sm: 164 * KIB,
        shared_per_block: 163 * KIB,
        unified_cache_bytes: 192 * KIB,
        ..hopper(
            "NVIDIA A100 SXM 80 GB",
            2_039.0,
            40 << 20,
            Rates::estimated(108, 2_039.0),
        )
    }
}

/// GTX Titan of the source: compute capability 3.5, and 8 blocks per SM as its worked example says.
pub(super) fn titan() -> DeviceLimits {
    let compute_capability = ComputeCapability { major: 3, minor: 5 };
    DeviceLimits {
        compute_capability,
        sms: 14,
        shared_per_sm: 48 * KIB,
        shared_per_block: 48 * KIB,
        shared_reserved_per_block: 0,
        shared_allocation_unit: AllocationUnits::of(compute_capability).shared_bytes,
        unified_cache_bytes: 64 * KIB,
        max_blocks_per_sm: 8,
        ..hopper(
            "GeForce GTX Titan",
            288.4,
            3 << 19,
            Rates::estimated(14, 288.4),
        )
    }
}
