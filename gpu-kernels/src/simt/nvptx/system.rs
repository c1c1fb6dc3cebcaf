//! Words by which blocks, GPUs and the host hear of each other.

use core::arch::asm;

use crate::memory::Out;

/// Release of the system.
#[inline(always)]
pub(super) fn post(to: Out<'_, u32>, i: usize, value: u32) {
    // SAFETY: the contract of the launch has the element in memory that this GPU reaches. Not `nomem`: it orders other
    // accesses, those of the block too, which a barrier has let this thread see.
    unsafe {
        asm!("fence.acq_rel.sys;", options(nostack));
        asm!("st.release.sys.global.u32 [{}], {};",
            in(reg64) to.pointer().add(i), in(reg32) value, options(nostack));
    }
}

/// Acquire of the system.
#[inline(always)]
pub(super) fn poll(from: Out<'_, u32>, i: usize) -> u32 {
    let found: u32;
    // SAFETY: as in `post`.
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
    // SAFETY: as in `post`.
    unsafe {
        asm!("atom.acq_rel.gpu.global.inc.u32 {}, [{}], {};",
            out(reg32) drawn, in(reg64) counter.pointer().add(i), in(reg32) last, options(nostack));
    }
    drawn
}

/// Relaxed, of the device.
#[inline(always)]
pub(super) fn raise(to: Out<'_, u32>, i: usize, value: u32) {
    // SAFETY: as in `post`.
    unsafe {
        asm!("red.relaxed.gpu.global.max.u32 [{}], {};",
            in(reg64) to.pointer().add(i), in(reg32) value, options(nostack));
    }
}
