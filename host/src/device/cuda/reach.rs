//! Memory of one GPU that kernels of another one reach: of one process, and of processes of one machine.

use cust_raw::{CUcontext, CUdevice, CUdeviceptr, CUresult};

use super::CudaDevice;
use super::driver::check;
use crate::device::error::DeviceError;
use crate::device::loader::newer::{
    CUipcMemHandle, cuCtxEnablePeerAccess, cuDeviceCanAccessPeer, cuIpcCloseMemHandle,
    cuIpcGetMemHandle, cuIpcOpenMemHandle_v2,
};
use crate::device::loader::symbols::{cuCtxGetCurrent, cuDeviceGet};

/// By which another process opens memory of this one.
pub(crate) type Ticket = [u8; 64];

/// Memory of another process, until it is dropped.
#[derive(Debug)]
pub(crate) struct Foreign {
    device: CudaDevice,
    address: CUdeviceptr,
}

impl CudaDevice {
    /// Has kernels of this device reach the memory of another one of this process; whether they can.
    pub(crate) fn reach(&self, other: &CudaDevice) -> Result<bool, DeviceError> {
        if self.ordinal() == other.ordinal() || !self.can_reach(other.ordinal())? {
            return Ok(false);
        }
        other.enter()?;
        let mut context: CUcontext = std::ptr::null_mut();
        // SAFETY: the pointer is writable.
        check("cuCtxGetCurrent", unsafe {
            cuCtxGetCurrent(&raw mut context)
        })?;
        self.enter()?;
        // SAFETY: the other device's context is current nowhere by this, and lives as long as that device.
        match unsafe { cuCtxEnablePeerAccess(context, 0) } {
            CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(true),
            CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED | CUresult::CUDA_ERROR_TOO_MANY_PEERS => {
                Ok(false)
            }
            result => check("cuCtxEnablePeerAccess", result).map(|()| true),
        }
    }

    /// Whether a link leads from this device to number `other` of the driver.
    fn can_reach(&self, other: u32) -> Result<bool, DeviceError> {
        self.enter()?;
        let mut devices: [CUdevice; 2] = [0; 2];
        for (device, ordinal) in devices.iter_mut().zip([self.ordinal(), other]) {
            // SAFETY: the pointer is writable.
            check("cuDeviceGet", unsafe {
                cuDeviceGet(device, ordinal as i32)
            })?;
        }
        let mut can = 0;
        // SAFETY: the pointer is writable.
        check("cuDeviceCanAccessPeer", unsafe {
            cuDeviceCanAccessPeer(&raw mut can, devices[0], devices[1])
        })?;
        Ok(can != 0)
    }

    /// What lets other processes open an allocation of this device that begins at `address`.
    pub(crate) fn ticket(&self, address: u64) -> Result<Ticket, DeviceError> {
        self.enter()?;
        let mut handle = CUipcMemHandle([0; 64]);
        // SAFETY: the pointer is writable; the driver checks the address.
        check("cuIpcGetMemHandle", unsafe {
            cuIpcGetMemHandle(&raw mut handle, address)
        })?;
        Ok(handle.0)
    }

    /// Opens memory of another process for the kernels of this device.
    pub(crate) fn open_foreign(&self, ticket: Ticket) -> Result<Foreign, DeviceError> {
        /// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`.
        const ENABLE: u32 = 1;
        self.enter()?;
        let mut address = 0;
        // SAFETY: the pointer is writable; the driver checks the handle.
        check("cuIpcOpenMemHandle", unsafe {
            cuIpcOpenMemHandle_v2(&raw mut address, CUipcMemHandle(ticket), ENABLE)
        })?;
        Ok(Foreign {
            device: self.clone(),
            address,
        })
    }
}

impl Foreign {
    /// Where kernels find it.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if self.device.synchronize().is_ok() {
            // SAFETY: it was opened, and no kernel uses it any more.
            let _ = unsafe { cuIpcCloseMemHandle(self.address) };
        }
    }
}
