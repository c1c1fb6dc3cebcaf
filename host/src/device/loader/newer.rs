//! Driver functions that `cust` does not name, most of them newer than `cust_raw` 0.11 (CUDA 11.4), declared here. Level: sys.

use std::ffi::{c_int, c_uint, c_void};

use cust_raw::{CUcontext, CUdevice, CUdeviceptr, CUfunction, CUstream};

use super::forward;

/// `CUlaunchConfig` of CUDA 11.8 and later: a launch with attributes such as a cluster's size.
#[repr(C)]
#[derive(Debug)]
pub struct CUlaunchConfig {
    /// Blocks along x, y, z.
    pub grid: [c_uint; 3],
    /// Threads of a block along x, y, z.
    pub block: [c_uint; 3],
    /// Bytes of dynamic shared memory of a block.
    pub shared_mem_bytes: c_uint,
    /// The stream to launch in.
    pub stream: CUstream,
    /// Attributes, or null.
    pub attributes: *mut CUlaunchAttribute,
    /// Number of attributes.
    pub attribute_count: c_uint,
}

/// `CUlaunchAttribute`: an identifier and 64 bytes of value.
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy)]
pub struct CUlaunchAttribute {
    /// Which attribute (`CU_LAUNCH_ATTRIBUTE_…`).
    pub id: c_uint,
    /// Padding of the C struct.
    pub pad: [u8; 4],
    /// The value, in the attribute's own layout.
    pub value: [u8; 64],
}

impl CUlaunchAttribute {
    /// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`: blocks of a cluster along x, one along y and z.
    pub fn cluster(blocks: c_uint) -> CUlaunchAttribute {
        let mut value = [0; 64];
        for (place, blocks) in value.chunks_exact_mut(4).zip([blocks, 1, 1]) {
            place.copy_from_slice(&blocks.to_ne_bytes());
        }
        CUlaunchAttribute {
            id: 4,
            pad: [0; 4],
            value,
        }
    }
}

impl CUlaunchAttribute {
    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`: the launch may begin before the one before it in the
    /// stream has ended.
    pub fn overlapping() -> CUlaunchAttribute {
        let mut value = [0; 64];
        value[..4].copy_from_slice(&1_i32.to_ne_bytes());
        CUlaunchAttribute {
            id: 6,
            pad: [0; 4],
            value,
        }
    }
}

/// `CUipcMemHandle`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUipcMemHandle(pub [u8; 64]);

forward! {
    // Memory of other devices, and of other processes.
    fn cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
    fn cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);
    fn cuIpcGetMemHandle(handle: *mut CUipcMemHandle, pointer: CUdeviceptr);
    fn cuIpcOpenMemHandle_v2(pointer: *mut CUdeviceptr, handle: CUipcMemHandle, flags: c_uint);
    fn cuIpcCloseMemHandle(pointer: CUdeviceptr);
    // Since CUDA 11.8: launches with clusters and other attributes.
    fn cuLaunchKernelEx(
        config: *const CUlaunchConfig, function: CUfunction, parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    // Since CUDA 4.0: what is known of a pointer; the attribute by its number, since newer ones have no name in `cust_raw`.
    fn cuPointerGetAttribute(data: *mut c_void, attribute: c_uint, pointer: CUdeviceptr);
    // Since CUDA 12.4: where a kernel's parameter lies, and how large it is.
    fn cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize, size: *mut usize);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_the_header() {
        assert_eq!(size_of::<CUlaunchAttribute>(), 72);
        assert_eq!(size_of::<CUlaunchConfig>(), 56);
        assert_eq!(std::mem::offset_of!(CUlaunchConfig, stream), 32);
    }

    #[test]
    fn a_cluster_is_three_numbers() {
        let attribute = CUlaunchAttribute::cluster(2);
        let numbers = attribute.value[..12].chunks_exact(4);
        let numbers: Vec<_> = numbers
            .map(|bytes| u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
            .collect();
        assert_eq!((attribute.id, &*numbers), (4, &[2, 1, 1][..]));
    }

    #[test]
    fn overlapping_is_a_boolean() {
        let attribute = CUlaunchAttribute::overlapping();
        assert_eq!((attribute.id, attribute.value[0]), (6, 1));
        assert!(attribute.value[1..].iter().all(|byte| *byte == 0));
    }
}
