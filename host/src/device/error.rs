//! What can go wrong between the program and a device.

use super::emulator::{Fault, MemoryError};
use super::holding::Holding;

/// A failure of a device, its driver, or a request that it cannot meet.
///
/// Every variant says what was expected and what was found; the variants that a user can mend carry a
/// remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The CUDA driver is absent, or does not start.
    #[error("open the CUDA driver: {cause}; {remedy}")]
    NoDriver {
        /// What the dynamic linker or the driver said.
        cause: String,
        /// What to do.
        remedy: &'static str,
    },

    /// The driver has no device of this number.
    #[error(
        "open CUDA device {ordinal}: the driver offers {count} device(s), numbered from 0; see \
         `nvidia-smi` and the variable CUDA_VISIBLE_DEVICES, or use the device `cpu`"
    )]
    NoDevice {
        /// The number requested.
        ordinal: u32,
        /// How many devices there are.
        count: u32,
    },

    /// The program was built without device code.
    #[error("load the kernels: {why}; {remedy}")]
    NoKernels {
        /// Why the build has none.
        why: String,
        /// What to do.
        remedy: &'static str,
    },

    /// No embedded image runs on the device.
    #[error(
        "load the kernels: the device is {device}, the program holds {embedded}; rebuild with the \
         device's architecture or an older one (cargo xtask build-ptx --arch {device})"
    )]
    UnsupportedArch {
        /// The device's architecture, such as `sm_90`.
        device: String,
        /// The embedded architectures, separated by commas.
        embedded: String,
    },

    /// The module holds no entry of this name: the library was built with the kernels of some families alone.
    #[error(
        "expected the kernel {kernel} in the program, found no kernel of its family for {arch}: the program was built with those \
         of some families, as `cargo xtask quickstart` does; `cargo build --release --package warpfuse` without \
         WARPFUSE_FAMILIES builds all"
    )]
    NoEntry {
        /// The entry's name.
        kernel: String,
        /// The loaded image's architecture.
        arch: String,
    },

    /// An allocation does not fit.
    #[error("allocate {requested} bytes on {device}: {free} of {total} bytes are free; {held}")]
    OutOfMemory {
        /// The device's name.
        device: String,
        /// Bytes requested.
        requested: usize,
        /// Free bytes at that moment (0 where unknown).
        free: usize,
        /// Bytes that the device has (0 where unknown), or that buffers may hold, where that is limited.
        total: usize,
        /// Who holds them.
        held: Box<Holding>,
    },

    /// A failure that was requested ([`Device::fail_after`](super::Device::fail_after)).
    #[error("{what}: a failure was requested")]
    Injected {
        /// The operation.
        what: &'static str,
    },

    /// A setting from outside makes no sense.
    #[error("{what}: expected {expected}, found `{found}`")]
    Setting {
        /// The setting.
        what: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        found: String,
    },

    /// A table of tuned launches that cannot be used.
    #[error("the table of tuned launches {path} cannot be used: {cause}")]
    Tuned {
        /// The file.
        path: String,
        /// Why.
        cause: String,
    },

    /// A launch breaks its kernel's contract.
    #[error("launch {kernel}: it requires {required}, given {given}")]
    Contract {
        /// The entry's name.
        kernel: String,
        /// What the kernel requires.
        required: String,
        /// What it was given.
        given: String,
    },

    /// Two lengths that have to be equal are not.
    #[error("{what}: expected {expected} elements, found {found}")]
    LengthMismatch {
        /// The operation.
        what: &'static str,
        /// Elements expected.
        expected: usize,
        /// Elements found.
        found: usize,
    },

    /// A range reaches beyond a buffer.
    #[error("{what}: elements {start}..{end} of a buffer of {len}")]
    OutOfBounds {
        /// The operation.
        what: &'static str,
        /// First element of the range.
        start: usize,
        /// One past its last element.
        end: usize,
        /// The buffer's length.
        len: usize,
    },

    /// A size in bytes does not fit the address space.
    #[error("{count} elements of {element_bytes} bytes exceed the address space")]
    SizeOverflow {
        /// Number of elements.
        count: usize,
        /// Bytes of an element.
        element_bytes: usize,
    },

    /// A buffer of one device was handed to another.
    #[error("{what}: expected a buffer on {expected}, found one on {found}")]
    WrongDevice {
        /// The operation.
        what: &'static str,
        /// The device expected.
        expected: String,
        /// The device found.
        found: String,
    },

    /// Memory that is lent at an address where kernels cannot load 16 bytes at once.
    #[error(
        "borrow memory: expected an address that is a multiple of 16, found {address:#x}; copy the array"
    )]
    Alignment {
        /// The address.
        address: u64,
    },

    /// The device cannot do this at all.
    #[error("{what} on {device}: {why}")]
    Unsupported {
        /// The operation.
        what: &'static str,
        /// The device's name.
        device: String,
        /// The reason.
        why: &'static str,
    },

    /// A text that names no device.
    #[error(
        "read `{text}` as a device: expected `auto`, `cpu`, `cuda`, `cuda:N`, `emulator`, `emulator:N` or `emulator:N:M`"
    )]
    UnknownDevice {
        /// The text.
        text: String,
    },

    /// The emulator found a kernel wrong.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),

    /// A copy to or from emulated memory that the emulator refuses.
    #[error(transparent)]
    EmulatedMemory(#[from] MemoryError),

    /// A driver call failed.
    #[error("{call}: {name} ({code}): {text}")]
    Driver {
        /// The driver function, or the step that called it.
        call: &'static str,
        /// The driver's code.
        code: i32,
        /// The code's name.
        name: String,
        /// The driver's sentence about it, and its log where it wrote one.
        text: String,
    },

    /// What members of a group were to add up on their devices; the device itself is well.
    #[error(transparent)]
    Group(#[from] Box<crate::device::group::GroupError>),
}

impl From<crate::device::group::GroupError> for DeviceError {
    fn from(error: crate::device::group::GroupError) -> Self {
        DeviceError::Group(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_what_to_do() {
        let error = DeviceError::NoDriver {
            cause: "no such file".into(),
            remedy: "use the device `cpu`",
        };
        let text = error.to_string();
        assert!(
            text.contains("no such file") && text.contains("`cpu`"),
            "{text}"
        );
    }

    #[test]
    fn an_error_is_small_enough_to_return() {
        assert!(
            size_of::<DeviceError>() <= 96,
            "{} bytes",
            size_of::<DeviceError>()
        );
    }
}
