//! A device's limits, read from the driver.

use cust::device::Device;
use cust_raw::CUdevice_attribute as Attribute;

use super::driver::{check, from_cust};
use crate::device::error::DeviceError;
use crate::device::loader::symbols::cuDeviceGetAttribute;
use crate::plan::limits::{AllocationUnits, ComputeCapability, DeviceLimits};
use crate::plan::rates::Rates;

const KIB: u32 = 1024;

/// Bandwidth assumed where the driver reports no memory clock (integrated GPUs), 10⁹ bytes per second:
/// that of 256-bit LPDDR5.
const UNREPORTED_BANDWIDTH_GBS: f64 = 200.0;

/// Reads the limits of a device. The driver must be initialised; no context is needed.
pub(super) fn read(device: Device) -> Result<DeviceLimits, DeviceError> {
    let get = |attribute| attribute_of(device, attribute);
    let name = device.name().map_err(from_cust("cuDeviceGetName"))?;
    let compute_capability = ComputeCapability {
        major: get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        minor: get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    };
    let units = AllocationUnits::of(compute_capability);
    let sms = get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    let shared_per_sm = get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?;
    let max_threads_per_sm = get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?;
    let warp_size = get(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?;
    let memory_bandwidth_gbs = bandwidth_gbs(
        get(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
        get(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
    );
    Ok(DeviceLimits {
        rates: Rates::for_device(&name, sms, memory_bandwidth_gbs),
        name,
        compute_capability,
        sms,
        registers_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        registers_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)?,
        // The instruction encoding's limit since compute capability 3.5; the driver does not tell it.
        max_registers_per_thread: 255,
        register_allocation_unit: units.registers,
        warp_allocation_granularity: units.warps,
        shared_per_sm,
        shared_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        shared_per_block_default: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
        shared_reserved_per_block: get(
            Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
        )?,
        shared_allocation_unit: units.shared_bytes,
        unified_cache_bytes: unified_cache_bytes(shared_per_sm),
        max_threads_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_threads_per_sm,
        max_warps_per_sm: max_threads_per_sm / warp_size.max(1),
        max_blocks_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
        warp_size,
        l2_bytes: u64::from(get(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        memory_bandwidth_gbs,
    })
}

fn attribute_of(device: Device, attribute: Attribute) -> Result<u32, DeviceError> {
    let mut value = 0;
    // SAFETY: the pointer is writable, the device came from the driver.
    let result = unsafe { cuDeviceGetAttribute(&raw mut value, attribute, device.as_raw()) };
    check("cuDeviceGetAttribute", result)?;
    Ok(value.unsigned_abs())
}

/// Peak bandwidth in 10⁹ bytes per second: double data rate over the whole bus.
fn bandwidth_gbs(clock_khz: u32, bus_bits: u32) -> f64 {
    match f64::from(clock_khz) * f64::from(bus_bits) * 2.0 / 8.0 * 1e-6 {
        0.0 => UNREPORTED_BANDWIDTH_GBS,
        gbs => gbs,
    }
}

/// Shared memory and L1 together, which the driver does not report: L1 keeps at least 28 KiB, and the
/// whole is a multiple of 32 KiB on every device since compute capability 7.0 (NVIDIA's tuning guides).
fn unified_cache_bytes(shared_per_sm: u32) -> u32 {
    (shared_per_sm + 28 * KIB).next_multiple_of(32 * KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unified_caches_are_those_of_the_tuning_guides() {
        for (shared, unified) in [(96, 128), (64, 96), (164, 192), (100, 128), (228, 256)] {
            assert_eq!(
                unified_cache_bytes(shared * KIB),
                unified * KIB,
                "{shared} KiB"
            );
        }
    }

    #[test]
    fn bandwidth_of_an_a100_is_the_data_sheets() {
        assert!((bandwidth_gbs(1_593_000, 5_120) - 2_039.0).abs() < 1.0);
        assert_eq!(bandwidth_gbs(0, 256), UNREPORTED_BANDWIDTH_GBS);
    }
}
