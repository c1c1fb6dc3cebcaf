//! From driver results to [`DeviceError`].

use std::ffi::{CStr, c_char};

use cust::error::CudaError;
use cust_raw::CUresult;

use crate::device::error::DeviceError;
use crate::device::loader::errors;

/// `Ok` for success, else an error that names the call.
pub(crate) fn check(call: &'static str, result: CUresult) -> Result<(), DeviceError> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(failure(call, code)),
    }
}

/// The error for a result of `cust`.
pub(crate) fn from_cust(call: &'static str) -> impl FnOnce(CudaError) -> DeviceError {
    move |error| failure(call, errors::known(error as i32))
}

fn failure(call: &'static str, code: CUresult) -> DeviceError {
    DeviceError::Driver {
        call,
        code: code as i32,
        name: text_of(code, errors::cuGetErrorName),
        text: text_of(code, errors::cuGetErrorString),
    }
}

type TextFunction = unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult;

fn text_of(code: CUresult, ask: TextFunction) -> String {
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: the pointer is writable; both functions accept every code.
    let result = unsafe { ask(code, &raw mut text) };
    if result != CUresult::CUDA_SUCCESS || text.is_null() {
        return "unknown error".to_owned();
    }
    // SAFETY: the driver returns a static string that ends in NUL.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}
