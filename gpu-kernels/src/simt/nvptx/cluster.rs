//! Clusters: blocks that run at the same time and reach each other's shared memory.

use core::arch::asm;

use crate::scalar::Word;

/// Number of this block in its cluster.
#[inline(always)]
pub fn rank() -> u32 {
    let rank: u32;
    // SAFETY: reads a special register.
    unsafe {
        asm!("mov.u32 {}, %cluster_ctarank;", out(reg32) rank, options(pure, nomem, nostack));
    }
    rank
}

/// Waits for all threads of the cluster.
///
/// # Safety
/// All of them call it together.
#[inline(always)]
pub unsafe fn sync() {
    // SAFETY: the caller's. Not `nomem`: it orders other accesses.
    unsafe {
        asm!(
            "barrier.cluster.arrive.release.aligned;",
            "barrier.cluster.wait.acquire.aligned;",
            options(nostack)
        );
    }
}

/// Lets the next launch begin, or waits for the one before.
#[inline(always)]
pub fn overlap(waits: bool) {
    // SAFETY: a hint to a launch that waits for this one, and a wait. Not `nomem`: it orders other accesses.
    unsafe {
        if waits {
            asm!("griddepcontrol.wait;", options(nostack));
        } else {
            asm!("griddepcontrol.launch_dependents;", options(nostack));
        }
    }
}

/// The address in the cluster of the place in the shared memory of block `rank` that `at` is in this block's.
#[inline(always)]
fn map(rank: u32, at: u32) -> u32 {
    let there: u32;
    // SAFETY: reckons with addresses.
    unsafe {
        asm!("mapa.shared::cluster.u32 {}, {}, {};",
            out(reg32) there, in(reg32) at, in(reg32) rank, options(pure, nomem, nostack));
    }
    there
}

/// Writes a word at the place in the shared memory of block `rank` that `at` is in this block's.
///
/// # Safety
/// `rank` is below the number of the cluster's blocks, that block runs, and `at` is in its shared memory.
#[inline(always)]
pub unsafe fn write<T: Word>(rank: u32, at: u32, value: T) {
    let (bits, there) = (value.to_bits(), map(rank, at));
    // SAFETY: the caller's.
    unsafe {
        by_size!(
            T,
            asm!("st.shared::cluster.b32 [{}], {};", in(reg32) there, in(reg32) bits as u32, options(nostack)),
            asm!("st.shared::cluster.b64 [{}], {};", in(reg32) there, in(reg64) bits, options(nostack))
        )
    }
}

/// Adds modulo 2³² at that place, and returns what was there.
///
/// # Safety
/// As [`write`].
#[inline(always)]
pub unsafe fn fetch_add(rank: u32, at: u32, value: u32) -> u32 {
    let before: u32;
    // SAFETY: the caller's.
    unsafe {
        asm!("atom.shared::cluster.add.u32 {}, [{}], {};",
            out(reg32) before, in(reg32) map(rank, at), in(reg32) value, options(nostack));
    }
    before
}
