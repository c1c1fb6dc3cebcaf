//! Pooling, fused and apart.

use super::args::{POOL_AVERAGE, SparseConvArgs};
use super::element::{Accumulator, Element};
use crate::cta::{Cache, Cta};
use crate::verbs::each_of_grid;

/// What is known of a window so far.
#[derive(Clone, Copy)]
pub(super) struct Window<A> {
    average: bool,
    count: u32,
    value: A,
}

impl<A: Accumulator> Window<A> {
    /// Nothing yet.
    #[inline(always)]
    pub fn new(kind: u32) -> Window<A> {
        Window {
            average: kind == POOL_AVERAGE,
            count: 0,
            value: A::ZERO,
        }
    }

    /// One more value.
    #[inline(always)]
    pub fn take(&mut self, value: A) {
        self.value = if self.count == 0 {
            value
        } else if self.average {
            self.value.plus(value)
        } else {
            self.value.larger(value)
        };
        self.count += 1;
    }

    /// The result.
    #[inline(always)]
    pub fn result(&self) -> A {
        if self.average {
            self.value.over(self.count)
        } else {
            self.value
        }
    }
}

/// A thread per result of pooling; sums are batch × filters × rows × columns.
pub fn pool<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>) {
    let g = &args.geometry;
    let [rows, cols] = g.pool.out;
    let all = g.batch as u64 * g.filters as u64 * rows as u64 * cols as u64;
    each_of_grid(cta, all, |at| {
        let (rest, col) = (at as u32 / cols, at as u32 % cols);
        let (map, row) = (rest / rows, rest % rows);
        let mut window = Window::new(g.pool.kind);
        for i in 0..g.pool.window[0] {
            for j in 0..g.pool.window[1] {
                let y = row * g.pool.stride[0] + i;
                let x = col * g.pool.stride[1] + j;
                let from = (map * g.out[0] + y) * g.out[1] + x;
                window.take(cta.load(args.sums, from as usize, Cache::Keep));
            }
        }
        let to = g.to.at(map / g.filters, map % g.filters, row, col);
        cta.write(args.out, to, window.result());
    });
}
