//! Atomic additions and copies to shared memory, at its 32-bit addresses.

use core::arch::asm;

use crate::cta::Shared;
use crate::scalar::{Real, Word};

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

/// Adds a number.
///
/// # Safety
/// As [`fetch_add`], and the word is a number of this type.
#[inline(always)]
pub unsafe fn add<T: Real>(at: u32, value: T) {
    let bits = value.to_bits();
    // SAFETY: the caller's.
    unsafe {
        by_size!(
            T,
            asm!("red.shared.add.f32 [{}], {};",
                in(reg32) at, in(reg32) f32::from_bits(bits as u32), options(nostack)),
            asm!("red.shared.add.f64 [{}], {};",
                in(reg32) at, in(reg64) f64::from_bits(bits), options(nostack))
        )
    }
}

/// The 32-bit address of element `i`.
#[inline(always)]
pub(super) fn shared_address<T: Word>(array: Shared<T>, i: usize) -> u32 {
    let base: u32;
    // SAFETY: reads the address of a symbol that the global assembly above declares.
    unsafe {
        asm!("mov.u32 {}, warpfuse_shared;", out(reg32) base, options(pure, nomem, nostack));
    }
    base + array.byte() + i as u32 * T::SIZE
}

/// An asynchronous copy of some bytes, or zeros for what is absent, whose address may lie outside.
macro_rules! copy {
    ($cache:literal, $bytes:literal, $to:expr, $j:expr, $from:expr, $i:expr, $present:expr) => {
        asm!("{{ .reg .pred absent; setp.eq.u32 absent, {}, 0;",
            concat!("cp.async.", $cache, ".shared.global [{}], [{}], ", $bytes, ", absent; }}"),
            in(reg32) $present as u32, in(reg32) shared_address($to, $j),
            in(reg64) $from.pointer().wrapping_add($i), options(nostack))
    };
}

pub(super) use copy;

/// [`copy`] of one element of this type.
macro_rules! copy_element {
    ($t:ty, $to:expr, $j:expr, $from:expr, $i:expr, $present:expr) => {
        by_size!(
            $t,
            copy!("ca", "4", $to, $j, $from, $i, $present),
            copy!("ca", "8", $to, $j, $from, $i, $present)
        )
    };
}

pub(super) use copy_element;

/// An asynchronous copy of the first `present` elements of 16 bytes, with zeros behind them.
///
/// # Safety
/// These elements may be read, and 16 bytes of shared memory written.
#[inline(always)]
pub(super) unsafe fn copy_some<T: Word>(to: Shared<T>, j: usize, from: *const T, present: usize) {
    let (at, bytes) = (shared_address(to, j), present as u32 * T::SIZE);
    // SAFETY: the caller's duty; of an absent piece nothing is read.
    unsafe {
        asm!("cp.async.cg.shared.global [{}], [{}], 16, {};",
            in(reg32) at, in(reg64) from, in(reg32) bytes, options(nostack));
    }
}
