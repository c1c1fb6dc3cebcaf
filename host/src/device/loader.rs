//! Run-time loader of the CUDA driver behind `cust`. Level: sys.
//!
//! `cust` and `cust_raw` want to be linked against `libcuda`. This room defines every function that
//! they name and forwards it to the driver library, which is opened once, on first use. So one binary
//! starts on machines with and without a driver, and builds where there is no CUDA at all; where a
//! toolkit's `libcuda.so` is found at link time, the definitions here win, because the linker takes an
//! object's definition before a shared library's.
//!
//! Without the library every function returns `CUDA_ERROR_NO_DEVICE`; a function that the driver at
//! hand lacks returns `CUDA_ERROR_NOT_FOUND`.

pub(crate) mod errors;
pub(crate) mod newer;
pub(crate) mod symbols;

use std::error::Error;
use std::ffi::{CStr, c_void};
use std::mem::transmute;
use std::sync::OnceLock;

use cust_raw::CUresult;
use libloading::Library;

/// Where the driver library is looked for, in this order, by the dynamic linker's own rules.
#[cfg(windows)]
const LIBRARY_NAMES: [&str; 1] = ["nvcuda.dll"];
/// Where the driver library is looked for, in this order, by the dynamic linker's own rules.
#[cfg(not(windows))]
const LIBRARY_NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

static DRIVER: OnceLock<Result<Library, String>> = OnceLock::new();

/// The driver library, opened on the first call and never closed.
///
/// # Errors
/// The dynamic linker's message when the library cannot be opened.
pub(crate) fn library() -> Result<&'static Library, &'static str> {
    DRIVER.get_or_init(open).as_ref().map_err(String::as_str)
}

fn open() -> Result<Library, String> {
    let mut first = None;
    for name in LIBRARY_NAMES {
        // SAFETY: the driver's initialisers are made to run in any process that opens it.
        match unsafe { Library::new(name) } {
            Ok(library) => return Ok(library),
            Err(error) => first = first.or(Some(reason(&error))),
        }
    }
    Err(first.unwrap_or_else(|| "no library name to try".to_owned()))
}

/// The dynamic linker's own words, which `libloading` keeps in the source of its error.
fn reason(error: &libloading::Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

/// One driver function's address, looked up on first use.
pub(crate) struct Symbol {
    name: &'static CStr,
    address: OnceLock<Result<usize, CUresult>>,
}

impl Symbol {
    /// A function that has not been looked up yet.
    pub(crate) const fn new(name: &'static CStr) -> Symbol {
        Symbol {
            name,
            address: OnceLock::new(),
        }
    }

    /// The function's address.
    ///
    /// # Errors
    /// `CUDA_ERROR_NO_DEVICE` without a driver library, `CUDA_ERROR_NOT_FOUND` when it lacks the
    /// function.
    pub(crate) fn address(&self) -> Result<*const c_void, CUresult> {
        let found = self.address.get_or_init(|| look_up(self.name));
        (*found).map(std::ptr::with_exposed_provenance)
    }
}

fn look_up(name: &CStr) -> Result<usize, CUresult> {
    let library = library().map_err(|_| CUresult::CUDA_ERROR_NO_DEVICE)?;
    // SAFETY: only the address is taken here; whoever calls it names its type.
    let symbol = unsafe { library.get::<*const c_void>(name) };
    let address = symbol.map_err(|_| CUresult::CUDA_ERROR_NOT_FOUND)?;
    Ok((*address).expose_provenance())
}

/// Defines driver functions that forward to the opened library: one line per function, each returning
/// `CUresult`. Results pass through [`errors::known`], because a newer driver's code would not be a
/// value of the `CUresult` that `cust_raw` declares.
macro_rules! forward {
    ($( fn $name:ident($($argument:ident: $type:ty),* $(,)?); )*) => { $(
        #[doc = concat!("Forwards to the driver's `", stringify!($name), "`.")]
        ///
        /// # Safety
        /// What the driver's documentation asks of a caller.
        #[allow(non_snake_case, reason = "the driver's own name")]
        #[allow(clippy::too_many_arguments, reason = "the driver's own signature")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> ::cust_raw::CUresult {
            use $crate::device::loader::{CStr, Symbol, c_void, errors::known, transmute};
            static SYMBOL: Symbol = {
                const NAME: &str = concat!(stringify!($name), "\0");
                Symbol::new(match CStr::from_bytes_with_nul(NAME.as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("an identifier holds no NUL"),
                })
            };
            match SYMBOL.address() {
                Ok(address) => {
                    type Function = unsafe extern "C" fn($($type),*) -> i32;
                    // SAFETY: the address is that of the driver's function of this name, whose
                    // signature this is; a result is a 32-bit integer in C.
                    let function = unsafe { transmute::<*const c_void, Function>(address) };
                    // SAFETY: the caller answers for the arguments.
                    known(unsafe { function($($argument),*) })
                }
                Err(missing) => missing,
            }
        }
    )* };
}
pub(crate) use forward;

#[cfg(test)]
mod tests {
    use super::*;

    static NO_SUCH_FUNCTION: Symbol = Symbol::new(c"cuNoSuchFunction");

    #[test]
    fn a_missing_function_is_an_error_and_not_a_crash() {
        let expected = match library() {
            Ok(_) => CUresult::CUDA_ERROR_NOT_FOUND,
            Err(_) => CUresult::CUDA_ERROR_NO_DEVICE,
        };
        assert_eq!(NO_SUCH_FUNCTION.address().unwrap_err(), expected);
    }

    #[test]
    fn cust_goes_through_the_loader() {
        let count =
            cust::init(cust::CudaFlags::empty()).and_then(|()| cust::device::Device::num_devices());
        match library() {
            Ok(_) => {}
            Err(_) => assert_eq!(count.unwrap_err(), cust::error::CudaError::NoDevice),
        }
    }

    #[test]
    fn cust_can_print_its_errors_without_a_driver() {
        assert!(!cust::error::CudaError::NoDevice.to_string().is_empty());
    }
}
