//! Entries of a warp counted in their order.

use crate::cta::{Cta, Shared};
use crate::verbs::{FULL, lane};

/// The lanes with the same number as this one, which `bits` bits hold; those that are not `wanted` have none.
#[inline(always)]
fn alike<C: Cta>(cta: &C, (number, bits): (u32, u32), wanted: bool) -> u32 {
    let mut alike = cta.ballot(wanted, FULL);
    let mut bit = 0;
    while bit < bits {
        let is_set = number >> bit & 1 != 0;
        let set = cta.ballot(is_set, FULL);
        alike &= if is_set { set } else { !set };
        bit += 1;
    }
    alike
}

/// How many before this lane's have been counted of `counter`; counts one for each wanted lane, of the lower lanes first. The whole
/// warp calls.
#[inline(always)]
pub(super) fn count_one<C: Cta>(
    cta: &C,
    counters: Shared<u32>,
    (counter, bits): (u32, u32),
    wanted: bool,
) -> u32 {
    let alike = alike(cta, (counter, bits), wanted);
    let before = (alike & ((1 << lane(cta)) - 1)).count_ones();
    let mut counted = 0;
    if wanted {
        counted = cta.shared_read(counters, counter as usize);
    }
    cta.sync_warp();
    if wanted && before == 0 {
        cta.shared_write(counters, counter as usize, counted + alike.count_ones());
    }
    cta.sync_warp();
    counted + before
}
