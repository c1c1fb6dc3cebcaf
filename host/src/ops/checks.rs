//! Checks of arguments that several operations make: lengths, and the device of a buffer.

use super::OpError;
use crate::device::{Buffer, Device};

/// Fails unless `found` elements are as many as expected.
pub(crate) fn length(what: &'static str, expected: usize, found: usize) -> Result<(), OpError> {
    if expected == found {
        Ok(())
    } else {
        Err(OpError::Length {
            what,
            expected,
            found,
        })
    }
}

/// Fails unless `buffer` has the elements expected.
pub(crate) fn same_length<T: bytemuck::Pod>(
    what: &'static str,
    buffer: &Buffer<T>,
    expected: usize,
) -> Result<(), OpError> {
    length(what, expected, buffer.len())
}

/// Fails unless what lies on `found` can be read by `expected`.
pub(crate) fn same_device(
    what: &'static str,
    expected: &Device,
    found: &Device,
) -> Result<(), OpError> {
    if found.shares_memory_with(expected) {
        Ok(())
    } else {
        Err(OpError::OtherDevice {
            what,
            expected: expected.to_string(),
            found: found.to_string(),
        })
    }
}
