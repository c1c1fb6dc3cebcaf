//! The panels of a window in shared memory, or the values of a digit.

use super::PanelMakingArgs;
use super::step::{NOTHING, TOGETHER};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::verbs::{each_of_block, lane};

/// The panels of a window in shared memory, and the counters of this warp.
pub(super) struct Window {
    pub bounds: Shared<u32>,
    pub counters: Shared<u32>,
    pub panels: u32,
    /// The largest power of two up to the number of panels.
    half: u32,
}

impl Window {
    /// A barrier must follow.
    #[inline(always)]
    pub fn load<C: Cta, T>(cta: &C, args: &PanelMakingArgs<'_, T>) -> Self {
        let panels = args.panels;
        let bounds = Shared::at(0, panels + 1);
        if args.bounds.is_some() {
            each_of_block(cta, panels + 1, |i| {
                let bound: u32 = cta.load(args.bounds, args.first as usize + i, Cache::Keep);
                cta.shared_write(bounds, i, bound);
            });
        }
        let warp = cta.thread() / WARP;
        Window {
            bounds,
            counters: Shared::at(4 * (panels + 1 + panels * warp), panels),
            panels,
            half: 1 << (31 - panels.leading_zeros()),
        }
    }

    /// Calls `each` for the panels of a lane.
    #[inline(always)]
    pub fn each_of_warp<C: Cta>(&self, cta: &C, mut each: impl FnMut(u32)) {
        let mut panel = lane(cta);
        while panel < self.panels {
            each(panel);
            panel += WARP;
        }
    }

    /// The panels of outputs with some numbers, or the digits of columns; as many as there are for what is not in the
    /// window.
    #[inline(always)]
    pub fn panels_of<C: Cta, T>(
        &self,
        cta: &C,
        args: &PanelMakingArgs<'_, T>,
        numbers: &[u32; TOGETHER],
    ) -> [u32; TOGETHER] {
        let mut found = [0; TOGETHER];
        if args.bounds.is_some() {
            self.search(cta, numbers, &mut found);
        } else {
            for k in 0..TOGETHER {
                let digit = numbers[k] >> args.shift & (self.panels - 1);
                let is_there = numbers[k] != NOTHING;
                found[k] = if is_there { digit } else { self.panels };
            }
        }
        found
    }

    #[inline(always)]
    fn search<C: Cta>(&self, cta: &C, numbers: &[u32; TOGETHER], found: &mut [u32; TOGETHER]) {
        let mut step = self.half;
        while step > 0 {
            for k in 0..TOGETHER {
                let next = found[k] + step;
                if next < self.panels && cta.shared_read(self.bounds, next as usize) <= numbers[k] {
                    found[k] = next;
                }
            }
            step /= 2;
        }
        let first: u32 = cta.shared_read(self.bounds, 0);
        let end: u32 = cta.shared_read(self.bounds, self.panels as usize);
        for k in 0..TOGETHER {
            if numbers[k] < first || numbers[k] >= end {
                found[k] = self.panels;
            }
        }
    }
}
