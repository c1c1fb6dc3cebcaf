//! What one GPU allows a kernel to use.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::PlanError;
use super::known;
use super::rates::Rates;

/// The most blocks that a grid may have in its first dimension.
pub(crate) const MAX_GRID: u32 = i32::MAX as u32;

/// The version of an NVIDIA architecture, for instance 9.0 for Hopper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ComputeCapability {
    /// The architecture: 3 Kepler, 8 Ampere and Ada, 9 Hopper, 10 and 12 Blackwell.
    pub major: u32,
    /// The revision.
    pub minor: u32,
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The allocation units of an architecture, which the driver does not report.
///
/// Source: NVIDIA's occupancy calculator (`cuda_occupancy.h` of the toolkit).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationUnits {
    /// Registers are given to a warp in multiples of this many.
    pub registers: u32,
    /// Warps of one SM are spread over this many partitions, each with its share of the registers.
    pub warps: u32,
    /// Shared memory is given to a block in multiples of this many bytes.
    pub shared_bytes: u32,
}

impl AllocationUnits {
    /// The units of `capability`; architectures newer than the list get those of the newest.
    ///
    /// ```
    /// use warpfuse::plan::limits::{AllocationUnits, ComputeCapability};
    /// let hopper = AllocationUnits::of(ComputeCapability { major: 9, minor: 0 });
    /// assert_eq!((hopper.registers, hopper.warps, hopper.shared_bytes), (256, 4, 128));
    /// ```
    pub fn of(capability: ComputeCapability) -> Self {
        let warps = if (capability.major, capability.minor) == (6, 0) {
            2
        } else {
            4
        };
        let shared_bytes = if capability.major >= 8 { 128 } else { 256 };
        Self {
            registers: 256,
            warps,
            shared_bytes,
        }
    }
}

/// Everything about a device that a launch model asks for.
///
/// Read from the driver by the device room, or taken from the table of known devices. Sizes are in
/// bytes unless the name says otherwise; registers are 32 bits wide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceLimits {
    /// The name for people.
    pub name: String,
    /// The architecture.
    pub compute_capability: ComputeCapability,
    /// Number of streaming multiprocessors (SMs).
    pub sms: u32,
    /// Registers of an SM.
    pub registers_per_sm: u32,
    /// Registers that one block may use.
    pub registers_per_block: u32,
    /// Registers that one thread may use.
    pub max_registers_per_thread: u32,
    /// Registers are given to a warp in multiples of this many.
    pub register_allocation_unit: u32,
    /// Warps of an SM are spread over this many partitions.
    pub warp_allocation_granularity: u32,
    /// Shared memory of an SM.
    pub shared_per_sm: u32,
    /// Shared memory that one block may use once its kernel has opted in.
    pub shared_per_block: u32,
    /// Shared memory that one block may use without opting in.
    pub shared_per_block_default: u32,
    /// Shared memory that the system takes from each block.
    pub shared_reserved_per_block: u32,
    /// Shared memory is given to a block in multiples of this many bytes.
    pub shared_allocation_unit: u32,
    /// The memory of an SM that shared memory and the L1 cache divide between them.
    pub unified_cache_bytes: u32,
    /// Threads of one block.
    pub max_threads_per_block: u32,
    /// Resident threads of an SM.
    pub max_threads_per_sm: u32,
    /// Resident warps of an SM.
    pub max_warps_per_sm: u32,
    /// Resident blocks of an SM.
    pub max_blocks_per_sm: u32,
    /// Threads of a warp.
    pub warp_size: u32,
    /// Size of the L2 cache.
    pub l2_bytes: u64,
    /// Memory bandwidth from the data sheet, 10⁹ bytes per second.
    pub memory_bandwidth_gbs: f64,
    /// What the device reaches in practice.
    pub rates: Rates,
}

impl DeviceLimits {
    /// The names that [`DeviceLimits::known`] answers to.
    pub const KNOWN: [&'static str; 4] = ["titan", "a100", "h100", "h200"];

    /// The limits of a device by its short name (see [`DeviceLimits::KNOWN`]), upper or lower case.
    ///
    /// `titan` is the GTX Titan **as the source of the published model describes it** (8 blocks per
    /// SM, where the silicon allows 16), so that the model's worked example comes out.
    ///
    /// ```
    /// use warpfuse::plan::limits::DeviceLimits;
    /// assert_eq!(DeviceLimits::known("H200").map(|d| d.sms), Some(132));
    /// assert!(DeviceLimits::known("abacus").is_none());
    /// ```
    pub fn known(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "titan" => Some(known::titan()),
            "a100" => Some(known::a100()),
            "h100" => Some(known::h100()),
            "h200" => Some(known::h200()),
            _ => None,
        }
    }

    /// Whether blocks form clusters, which share a row of a dense matrix, or the sums of a sparse one: from Hopper on.
    pub fn has_clusters(&self) -> bool {
        self.compute_capability.major >= 9
    }

    /// Checks that no limit is zero where a model divides by it.
    ///
    /// # Errors
    /// [`PlanError::Limits`] names the first one that is.
    pub fn validate(&self) -> Result<(), PlanError> {
        let positive = [
            ("sms", self.sms),
            ("registers_per_sm", self.registers_per_sm),
            ("register_allocation_unit", self.register_allocation_unit),
            (
                "warp_allocation_granularity",
                self.warp_allocation_granularity,
            ),
            ("shared_allocation_unit", self.shared_allocation_unit),
            ("max_threads_per_block", self.max_threads_per_block),
            ("max_warps_per_sm", self.max_warps_per_sm),
            ("max_blocks_per_sm", self.max_blocks_per_sm),
            ("warp_size", self.warp_size),
        ];
        match positive.iter().find(|(_, value)| *value == 0) {
            Some((limit, _)) => Err(PlanError::Limits {
                device: self.name.clone(),
                limit,
            }),
            None => Ok(()),
        }
    }
}
