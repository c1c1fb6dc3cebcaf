//! The family of dense kernels and its arguments.

use crate::cta::Cta;
use crate::memory::{In, Out};
use crate::scalar::{Pack, Real, Words};

/// The family of dense kernels.
pub struct Dense<T>(core::marker::PhantomData<T>);

/// Arguments of every dense kernel.
#[repr(C)]
pub struct DenseArgs<'a, T> {
    /// m.
    pub rows: u32,
    /// n.
    pub cols: u32,
    /// 0: what blocks come to is added to w. Another number: the rows are shared out as to this many blocks (or clusters),
    /// which the launch's take in turn, and what each comes to is written to a row of `output`, without α: the same
    /// bits whatever the grid. [`crate::fused::Product::Forward`] ignores it.
    pub chunks: u32,
    /// Elements from the start of a row to the start of the next; at least n.
    pub ld: u64,
    /// m · ld elements, row by row. What lies between n and `ld` must be finite: packed loads reach into it and
    /// multiply it by 0.
    pub x: In<'a, T>,
    /// y (n elements) for [`crate::fused::Product::Fused`] and [`crate::fused::Product::Forward`], p (m) for the other.
    pub input: In<'a, T>,
    /// v (m elements), optional.
    pub weights: In<'a, T>,
    /// s (one element), optional.
    pub shift: In<'a, T>,
    /// z (m elements), optional; read by [`crate::fused::Product::Forward`] alone.
    pub addend: In<'a, T>,
    /// w (n elements), or p (m) for [`crate::fused::Product::Forward`]; chunks × n elements where there are chunks.
    pub output: Out<'a, T>,
    /// α.
    pub alpha: T,
    /// β, used by [`crate::fused::Product::Forward`] alone.
    pub beta: T,
}

impl<T: Copy> Clone for DenseArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for DenseArgs<'_, T> {}

impl<T: Real> DenseArgs<'_, T> {
    /// The parts into which the rows are shared out, where a launch has `blocks` for them.
    #[inline(always)]
    pub(crate) fn slices(&self, blocks: u32) -> u32 {
        match self.chunks {
            0 => blocks,
            chunks => chunks,
        }
    }

    /// Adds what a slice comes to in a column to w, or writes it where it belongs.
    #[inline(always)]
    pub(crate) fn keep<C: Cta>(&self, cta: &C, slice: u32, column: u32, sum: T) {
        match self.chunks {
            0 => cta.add(self.output, column as usize, self.alpha * sum),
            _ => {
                let at = slice as u64 * self.cols as u64 + column as u64;
                cta.write(self.output, at as usize, sum);
            }
        }
    }

    /// The same for a pack of columns, as far as they are there. A whole pack is added at once, which costs the L2 cache
    /// as much as one element (n = 32,768: 902 µs instead of 918 on an H200, 98.9 % of a plain read).
    ///
    /// Writing whole packs where there are chunks was left: kernels of clusters, which have no register left, spill then.
    #[inline(always)]
    pub(crate) fn keep_pack<C: Cta, P: Pack<T>>(&self, cta: &C, slice: u32, column: u32, pack: &P) {
        let lanes = P::LANES as u32;
        if self.chunks == 0 && P::LANES == T::Pack::LANES && column + lanes <= self.cols {
            let mut sum = T::Pack::ZERO;
            for (to, from) in sum.as_mut().iter_mut().zip(pack.as_ref()) {
                *to = self.alpha * *from;
            }
            return cta.add_pack(self.output, column as usize, sum);
        }
        for (j, element) in pack.as_ref().iter().enumerate() {
            if column + (j as u32) < self.cols {
                self.keep(cta, slice, column + j as u32, *element);
            }
        }
    }
}

/// The most columns: a thread's column may run past the end by a step before 32 bits overflow.
pub const MAX_COLUMNS: u32 = u32::MAX - (1 << 20);
