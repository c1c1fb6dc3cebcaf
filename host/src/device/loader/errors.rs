//! Driver result codes: those that `cust_raw`'s enum has, and their texts where there is no driver to
//! ask. Level: sys.

use std::ffi::c_char;

use cust_raw::CUresult;

use super::Symbol;

/// Codes of `cust_raw`'s `CUresult` (CUDA 11.4), in ascending order.
const KNOWN: [i32; 87] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 34, 100, 101, 102, 200, 201, 202, 205, 206, 207, 208, 209, 210, 211,
    212, 213, 214, 215, 216, 217, 218, 219, 220, 221, 222, 223, 224, 300, 301, 302, 303, 304, 400,
    401, 500, 600, 700, 701, 702, 703, 704, 705, 708, 709, 710, 711, 712, 713, 714, 715, 716, 717,
    718, 719, 720, 800, 801, 802, 803, 804, 805, 806, 807, 808, 809, 900, 901, 902, 903, 904, 905,
    906, 907, 908, 909, 910, 911, 999,
];

/// A driver's result as a value of `CUresult`; a code that a newer driver added becomes
/// `CUDA_ERROR_UNKNOWN`, and its number goes to the log.
pub(crate) fn known(code: i32) -> CUresult {
    if KNOWN.binary_search(&code).is_err() {
        tracing::warn!(
            code,
            "the driver returned an error code newer than CUDA 11.4"
        );
        return CUresult::CUDA_ERROR_UNKNOWN;
    }
    // SAFETY: `KNOWN` lists discriminants of `CUresult`, which is `repr(i32)`.
    unsafe { std::mem::transmute::<i32, CUresult>(code) }
}

type TextFunction = unsafe extern "C" fn(i32, *mut *const c_char) -> i32;

static GET_ERROR_NAME: Symbol = Symbol::new(c"cuGetErrorName");
static GET_ERROR_STRING: Symbol = Symbol::new(c"cuGetErrorString");

/// The driver's `cuGetErrorName`; without a driver, a fixed text, because `cust` panics when it cannot
/// print an error.
///
/// # Safety
/// `text` points to writable memory for one pointer.
#[allow(non_snake_case, reason = "the driver's own name")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(error: CUresult, text: *mut *const c_char) -> CUresult {
    // SAFETY: as the caller promises.
    unsafe { error_text(&GET_ERROR_NAME, error, text) }
}

/// The driver's `cuGetErrorString`; without a driver, a fixed text, because `cust` panics when it
/// cannot print an error.
///
/// # Safety
/// `text` points to writable memory for one pointer.
#[allow(non_snake_case, reason = "the driver's own name")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(error: CUresult, text: *mut *const c_char) -> CUresult {
    // SAFETY: as the caller promises.
    unsafe { error_text(&GET_ERROR_STRING, error, text) }
}

/// # Safety
/// `text` points to writable memory for one pointer.
unsafe fn error_text(symbol: &Symbol, error: CUresult, text: *mut *const c_char) -> CUresult {
    let Ok(address) = symbol.address() else {
        // SAFETY: the caller's pointer; the text is static.
        unsafe { text.write(c"no CUDA driver to ask for the error's name".as_ptr()) };
        return CUresult::CUDA_SUCCESS;
    };
    // SAFETY: both functions have this signature in the driver.
    let function: TextFunction = unsafe { std::mem::transmute(address) };
    // SAFETY: any code is allowed; the caller's pointer is writable.
    known(unsafe { function(error as i32, text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_survive_the_round_trip() {
        assert!(KNOWN.is_sorted());
        assert_eq!(known(0), CUresult::CUDA_SUCCESS);
        assert_eq!(known(222), CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
        assert_eq!(known(911), CUresult::CUDA_ERROR_EXTERNAL_DEVICE);
    }

    #[test]
    fn newer_codes_become_unknown() {
        for code in [-1, 9, 36, 226, 721, 912, 1000, i32::MAX] {
            assert_eq!(known(code), CUresult::CUDA_ERROR_UNKNOWN, "code {code}");
        }
    }
}
