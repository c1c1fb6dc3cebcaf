//! How many blocks and warps of a kernel an SM holds at once.
//!
//! Registers are given to warps, shared memory to blocks, and each has a unit; the smallest of four
//! quotients is the number of resident blocks. Source: NVIDIA's occupancy calculator.

use super::limits::DeviceLimits;

pub use super::limiter::Limiter;

/// How the warps of a block that do not fill all register partitions of an SM are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RegisterRule {
    /// As the driver does today: an SM holds this many warps in all, and blocks share them out.
    #[default]
    Partitions,
    /// As the published model does: each block's warps are rounded up to the granularity. Never more
    /// blocks than the driver allows; fewer when the block is not a multiple of it.
    RoundedBlocks,
}

/// What one block of a kernel uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Threads.
    pub block_size: u32,
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Static and dynamic shared memory, bytes, without what the system reserves.
    pub shared_bytes: u64,
}

/// What an SM holds of a kernel at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// Resident blocks; zero when the kernel cannot run at all.
    pub blocks_per_sm: u32,
    /// Resident warps.
    pub warps_per_sm: u32,
    /// What keeps it from being more.
    pub limiter: Limiter,
}

/// The occupancy of `usage` on `limits`, counted as the driver counts it.
///
/// When several limits are equally tight, the first of warps, blocks, registers, shared memory is
/// named: at full occupancy that is warps.
///
/// ```
/// use warpfuse::plan::limits::DeviceLimits;
/// use warpfuse::plan::occupancy::{Limiter, Usage, occupancy};
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// let full = occupancy(&h200, Usage { block_size: 256, registers: 32, shared_bytes: 0 });
/// assert_eq!((full.blocks_per_sm, full.warps_per_sm, full.limiter), (8, 64, Limiter::Warps));
/// ```
pub fn occupancy(limits: &DeviceLimits, usage: Usage) -> Occupancy {
    occupancy_with(limits, usage, RegisterRule::Partitions)
}

/// The occupancy of `usage` on `limits`, with the register rule of your choice.
pub fn occupancy_with(limits: &DeviceLimits, usage: Usage, rule: RegisterRule) -> Occupancy {
    if usage.block_size == 0 || usage.block_size > limits.max_threads_per_block {
        return Occupancy {
            blocks_per_sm: 0,
            warps_per_sm: 0,
            limiter: Limiter::BlockSize,
        };
    }
    let warps = usage.block_size.div_ceil(limits.warp_size.max(1));
    let resident = limits
        .max_warps_per_sm
        .min(limits.max_threads_per_sm / limits.warp_size.max(1));
    let by_registers = blocks_by_registers(limits, usage.registers, warps, rule);
    let quotients = [
        (Limiter::Warps, resident / warps),
        (Limiter::Blocks, limits.max_blocks_per_sm),
        (Limiter::Registers, by_registers),
        (
            Limiter::SharedMemory,
            blocks_by_shared(limits, usage.shared_bytes),
        ),
    ];
    let (limiter, blocks_per_sm) = quotients
        .into_iter()
        .min_by_key(|&(_, blocks)| blocks)
        .unwrap_or((Limiter::Blocks, limits.max_blocks_per_sm));
    Occupancy {
        blocks_per_sm,
        warps_per_sm: blocks_per_sm * warps,
        limiter,
    }
}

fn blocks_by_registers(
    limits: &DeviceLimits,
    registers: u32,
    warps: u32,
    rule: RegisterRule,
) -> u32 {
    if registers == 0 {
        return u32::MAX;
    }
    if registers > limits.max_registers_per_thread {
        return 0;
    }
    let granularity = u64::from(limits.warp_allocation_granularity.max(1));
    let unit = u64::from(limits.register_allocation_unit.max(1));
    let per_warp =
        (u64::from(registers) * u64::from(limits.warp_size.max(1))).next_multiple_of(unit);
    let rounded = u64::from(warps).next_multiple_of(granularity);
    // The hardware admits a block as if it filled every partition evenly.
    if per_warp.saturating_mul(rounded) > u64::from(limits.registers_per_block) {
        return 0;
    }
    let per_sm = u64::from(limits.registers_per_sm);
    let blocks = match rule {
        RegisterRule::Partitions => {
            per_sm / granularity / per_warp * granularity / u64::from(warps)
        }
        RegisterRule::RoundedBlocks => per_sm / (per_warp * rounded),
    };
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

fn blocks_by_shared(limits: &DeviceLimits, shared_bytes: u64) -> u32 {
    if shared_bytes > u64::from(limits.shared_per_block) {
        return 0;
    }
    let used = shared_bytes + u64::from(limits.shared_reserved_per_block);
    if used == 0 {
        return u32::MAX;
    }
    let allocated = used.next_multiple_of(u64::from(limits.shared_allocation_unit.max(1)));
    u32::try_from(u64::from(limits.shared_per_sm) / allocated).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(device: &str, block_size: u32, registers: u32, shared_bytes: u64) -> (u32, u32, Limiter) {
        let limits = DeviceLimits::known(device).expect("a listed device");
        let held = occupancy(
            &limits,
            Usage {
                block_size,
                registers,
                shared_bytes,
            },
        );
        (held.blocks_per_sm, held.warps_per_sm, held.limiter)
    }

    #[test]
    fn each_limit_binds_in_its_turn() {
        assert_eq!(on("h200", 1_024, 32, 0), (2, 64, Limiter::Warps));
        assert_eq!(on("h200", 1_024, 24, 0), (2, 64, Limiter::Warps));
        assert_eq!(on("h200", 32, 16, 0), (32, 32, Limiter::Blocks));
        assert_eq!(
            on("h200", 256, 32, 113 * 1_024),
            (2, 16, Limiter::SharedMemory)
        );
        assert_eq!(on("h200", 128, 255, 0), (2, 8, Limiter::Registers));
        assert_eq!(on("titan", 64, 16, 0), (8, 16, Limiter::Blocks));
    }

    /// Random kernels and launches, recorded once: registers, threads, shared bytes, blocks per SM.
    const DRIVER_OF_AN_H200: &str = include_str!("recorded/occupancy_h200.txt");

    #[test]
    fn the_driver_of_an_h200_counts_the_same() {
        let lines = DRIVER_OF_AN_H200
            .lines()
            .filter(|line| !line.starts_with('#'));
        let mut cases = 0;
        for line in lines {
            let numbers = line.split(' ').map(|n| n.parse::<u32>().expect("a number"));
            let [registers, block_size, shared, blocks] = *numbers.collect::<Vec<_>>() else {
                panic!("expected four numbers, found `{line}`");
            };
            let found = on("h200", block_size, registers, u64::from(shared)).0;
            assert_eq!(found, blocks, "{line}");
            cases += 1;
        }
        assert_eq!(cases, 168);
    }

    #[test]
    fn what_cannot_run_holds_no_block() {
        assert_eq!(on("h200", 0, 32, 0), (0, 0, Limiter::BlockSize));
        assert_eq!(on("h200", 1_056, 32, 0), (0, 0, Limiter::BlockSize));
        assert_eq!(on("h200", 1_024, 65, 0), (0, 0, Limiter::Registers));
        assert_eq!(on("h200", 32, 256, 0), (0, 0, Limiter::Registers));
        assert_eq!(
            on("h200", 32, 32, 227 * 1_024 + 1),
            (0, 0, Limiter::SharedMemory)
        );
        assert_eq!(on("h200", 32, 32, u64::MAX), (0, 0, Limiter::SharedMemory));
    }

    #[test]
    fn the_system_reserves_a_kilobyte_of_each_block() {
        // 228 KiB: two blocks of 113 and the reserved one each, not two of 114.
        assert_eq!(on("h200", 1_024, 32, 113 * 1_024).0, 2);
        assert_eq!(on("h200", 1_024, 32, 113 * 1_024 + 1).0, 1);
        assert_eq!(on("titan", 256, 32, 24 * 1_024).0, 2);
    }

    #[test]
    fn the_published_rule_rounds_each_block_up_to_the_partitions() {
        let limits = DeviceLimits::known("titan").expect("a listed device");
        let usage = Usage {
            block_size: 320,
            registers: 43,
            shared_bytes: 0,
        };
        assert_eq!(occupancy(&limits, usage).warps_per_sm, 40);
        assert_eq!(
            occupancy_with(&limits, usage, RegisterRule::RoundedBlocks).warps_per_sm,
            30
        );
    }
}
