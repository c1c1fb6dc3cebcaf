//! Pooling, fused and apart; what follows sums that lie in memory.

use super::args::{POOL_AVERAGE, SparseConvArgs, finished};
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

/// Bias, rectification and pooling of sums in memory: a thread per result.
pub fn finish<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>) {
    let g = &args.geometry;
    let (rows, cols) = (g.pool.out[0], g.pool.out[1]);
    let all = g.batch as u64 * g.filters as u64 * rows as u64 * cols as u64;
    each_of_grid(cta, all, |at| {
        let (rest, col) = (at as u32 / cols, at as u32 % cols);
        let (map, row) = (rest / rows, rest % rows);
        let (image, filter) = (map / g.filters, map % g.filters);
        let mut window = Window::new(g.pool.kind);
        for i in 0..g.pool.window[0] {
            for j in 0..g.pool.window[1] {
                let y = row * g.pool.stride[0] + i;
                let x = col * g.pool.stride[1] + j;
                let sum = cta.load(args.sums, g.from.at(image, filter, y, x), Cache::Keep);
                window.take(finished(cta, args, filter, sum));
            }
        }
        let to = g.to.at(args.first_image + image, filter, row, col);
        cta.write(args.out, to, window.result());
    });
}
