//! Words by which blocks, GPUs and the host hear of each other.

use core::arch::asm;

use crate::memory::Out;

/// Relaxed, of the system: each of the two whole.
#[inline(always)]
pub(super) fn send(to: Out<'_, u64>, i: usize, packets: [u64; 2]) {
    // SAFETY: the contract of the launch has the elements in memory that this GPU reaches, at a multiple of 16 bytes.
    unsafe {
        asm!("st.relaxed.sys.global.v2.b64 [{}], {{{}, {}}};",
            in(reg64) to.pointer().add(i), in(reg64) packets[0], in(reg64) packets[1], options(nostack));
    }
}

/// Relaxed, of the system.
#[inline(always)]
pub(super) fn receive(from: Out<'_, u64>, i: usize) -> [u64; 2] {
    let (first, second): (u64, u64);
    // SAFETY: as in `send`.
    unsafe {
        asm!("ld.relaxed.sys.global.v2.b64 {{{}, {}}}, [{}];",
            out(reg64) first, out(reg64) second, in(reg64) from.pointer().add(i), options(nostack));
    }
    [first, second]
}

/// Acquire of the system.
#[inline(always)]
pub(super) fn poll(from: Out<'_, u32>, i: usize) -> u32 {
    let found: u32;
    // SAFETY: as in `send`.
    unsafe {
        asm!("ld.acquire.sys.global.u32 {}, [{}];",
            out(reg32) found, in(reg64) from.pointer().add(i), options(nostack));
    }
    found
}

/// Release and acquire of the device.
#[inline(always)]
pub(super) fn ticket(counter: Out<'_, u32>, i: usize, last: u32) -> u32 {
    let drawn: u32;
    // SAFETY: as in `send`.
    unsafe {
        asm!("atom.acq_rel.gpu.global.inc.u32 {}, [{}], {};",
            out(reg32) drawn, in(reg64) counter.pointer().add(i), in(reg32) last, options(nostack));
    }
    drawn
}

/// Relaxed, of the device.
#[inline(always)]
pub(super) fn raise(to: Out<'_, u32>, i: usize, value: u32) {
    // SAFETY: as in `send`.
    unsafe {
        asm!("red.relaxed.gpu.global.max.u32 [{}], {};",
            in(reg64) to.pointer().add(i), in(reg32) value, options(nostack));
    }
}

/// Relaxed, of the device.
#[inline(always)]
pub(super) fn peek(from: Out<'_, u32>, i: usize) -> u32 {
    let found: u32;
    // SAFETY: as in `send`.
    unsafe {
        asm!("ld.relaxed.gpu.global.u32 {}, [{}];",
            out(reg32) found, in(reg64) from.pointer().add(i), options(nostack));
    }
    found
}

/// Relaxed, of the device.
#[inline(always)]
pub(super) fn add_wrapping(to: Out<'_, u64>, i: usize, value: u64) {
    // SAFETY: as in `send`.
    unsafe {
        asm!("red.relaxed.gpu.global.add.u64 [{}], {};",
            in(reg64) to.pointer().add(i), in(reg64) value, options(nostack));
    }
}
