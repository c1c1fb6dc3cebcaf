//! To be filled.

#[cfg(feature = "emulator")]
pub mod emulator;
