//! Atomic additions to shared memory, at its 32-bit addresses.

use core::arch::asm;

/// Adds modulo 2³² and returns what was there.
///
/// # Safety
/// A word of the block's shared memory is at `at`.
#[inline(always)]
pub unsafe fn fetch_add(at: u32, value: u32) -> u32 {
    let before: u32;
    // SAFETY: the caller's.
    unsafe {
        asm!("atom.shared.add.u32 {}, [{}], {};",
            out(reg32) before, in(reg32) at, in(reg32) value, options(nostack));
    }
    before
}
