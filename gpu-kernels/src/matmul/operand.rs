//! A and B as the bodies see them: panels that are `tile` wide across and as long as k.

use super::MatmulArgs;
use crate::cta::{Cache, Cta, Shared};
use crate::memory::In;
use crate::scalar::{Pack, Real, Words};

/// One factor of the product: op(A), whose rows lie across, or op(B), whose columns do.
#[derive(Clone, Copy)]
pub struct Operand<'a, T> {
    memory: In<'a, T>,
    /// Elements between stored rows.
    ld: u64,
    /// Rows of op(A), or columns of op(B).
    across: u32,
    k: u32,
    /// Whether neighbours across are neighbours in memory; else neighbours along k are.
    is_contiguous_across: bool,
    /// Whether stored rows start at multiples of 16 bytes.
    has_packs: bool,
}

impl<'a, T: Real> Operand<'a, T> {
    /// op(A).
    #[inline(always)]
    pub fn a(args: &MatmulArgs<'a, T>) -> Self {
        Operand {
            memory: args.a,
            ld: args.lda,
            across: args.m,
            k: args.k,
            is_contiguous_across: args.a_transposed == 1,
            has_packs: args.lda.is_multiple_of(T::Pack::LANES as u64),
        }
    }

    /// op(B).
    #[inline(always)]
    pub fn b(args: &MatmulArgs<'a, T>) -> Self {
        Operand {
            memory: args.b,
            ld: args.ldb,
            across: args.n,
            k: args.k,
            is_contiguous_across: args.b_transposed == 0,
            has_packs: args.ldb.is_multiple_of(T::Pack::LANES as u64),
        }
    }

    #[inline(always)]
    fn index(&self, across: u32, k: u32) -> usize {
        let (row, column) = if self.is_contiguous_across {
            (k, across)
        } else {
            (across, k)
        };
        (row as u64 * self.ld + column as u64) as usize
    }

    /// An element, or zero outside.
    #[inline(always)]
    pub fn get<C: Cta>(&self, cta: &C, across: u32, k: u32) -> T {
        if across < self.across && k < self.k {
            cta.load(self.memory, self.index(across, k), Cache::Keep)
        } else {
            T::ZERO
        }
    }

    /// Loads `DEPTH` steps of k from `k` on, `TILE` elements across each, and stores them to shared memory: element
    /// (a, k') of the panel to `k' · pitch + a`. Zero outside.
    ///
    /// 16 bytes at a time if rows start at multiples of it. Where memory is contiguous along k, neighbouring threads
    /// read from neighbouring rows, so that shared memory is written without conflicts; the rest of a sector that is
    /// read waits in L1.
    #[inline(always)]
    pub fn load_panel<C: Cta, const TILE: u32, const DEPTH: u32>(
        &self,
        cta: &C,
        to: Shared<T>,
        pitch: u32,
        (across, k): (u32, u32),
    ) {
        let lanes = T::Pack::LANES as u32;
        let threads = super::THREADS;
        for round in 0..TILE * DEPTH / lanes / threads {
            let pack = cta.thread() + round * threads;
            // Packs lie along the contiguous direction.
            let (a, step) = if self.is_contiguous_across {
                (pack % (TILE / lanes) * lanes, pack / (TILE / lanes))
            } else {
                (pack % TILE, pack / TILE * lanes)
            };
            let values = self.pack(cta, across + a, k + step);
            for l in 0..lanes {
                let (a, step) = if self.is_contiguous_across {
                    (a + l, step)
                } else {
                    (a, step + l)
                };
                cta.shared_write(to, (step * pitch + a) as usize, values.as_ref()[l as usize]);
            }
        }
    }

    /// 16 bytes along the contiguous direction; zero outside.
    #[inline(always)]
    fn pack<C: Cta>(&self, cta: &C, across: u32, k: u32) -> T::Pack {
        let lanes = T::Pack::LANES as u32;
        let (last_across, last_k) = if self.is_contiguous_across {
            (across + lanes - 1, k)
        } else {
            (across, k + lanes - 1)
        };
        if self.has_packs && last_across < self.across && last_k < self.k {
            return cta.load_pack(self.memory, self.index(across, k), Cache::Keep);
        }
        let mut pack = T::Pack::ZERO;
        for (l, value) in pack.as_mut().iter_mut().enumerate() {
            *value = if self.is_contiguous_across {
                self.get(cta, across + l as u32, k)
            } else {
                self.get(cta, across, k + l as u32)
            };
        }
        pack
    }
}
