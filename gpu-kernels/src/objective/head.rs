//! Sparse X (CSR) whose most frequent columns are kept apart, the *head*: objective and gradient in one pass.
//!
//! Columns of real data follow power laws: the first are in nearly every row, so that additions to their elements of w
//! queue up at one address each, about 10 ns for each row of X on an H200 (23 ms for 2,396,130 rows; with a head 1.8 ms).
//! Here an index with the bit [`HEAD`] names a place in the head instead of a column. Elements of y and sums of the head
//! lie in shared memory; of its first [`BUSIEST`] columns each warp has sums of its own, which with 32 instead of 128 of
//! them was as quick. Everything else, formula and guarantees, is as without a head.
//!
//! Mapping: VS lanes own one row at a time; lane l takes nonzeros l, l + VS, …, of which the first K stay in registers.
//!
//! Shared memory: with H places in the head, H elements of y, H sums, and [`BUSIEST`] sums per warp.

use super::RowArgs;
use super::args::{ObjectiveArgs, is_over};
use super::judge::Judge;
use super::sparse::Compiled;
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::fused::SparseArgs;
use crate::fused::sparse::{RowStep, first_and_step};
use crate::math::Elementary;
use crate::memory::In;
use crate::scalar::Real;
use crate::verbs::{each_of_block, lane, sum_lanes};

/// Marks an index as a place in the head.
pub const HEAD: u32 = 1 << 31;
/// Columns of which each warp has sums of its own: rows of many warps meet there all the time.
pub const BUSIEST: u32 = 128;

/// X of sparse objectives.
#[repr(C)]
pub struct HeadedArgs<'a, T> {
    /// X, y as `input` and w as `output`; with a head, its indices are marked.
    pub x: SparseArgs<'a, T>,
    /// The column of each place of the head, distinct; nothing without one.
    pub order: In<'a, u32>,
}

impl<T: Copy> Clone for HeadedArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for HeadedArgs<'_, T> {}

/// Dynamic shared memory of a block of `block` threads for `places` places of `size` bytes.
pub const fn shared_bytes(places: u32, block: u32, size: u32) -> u64 {
    (2 * places as u64 + BUSIEST as u64 * (block / WARP) as u64) * size as u64
}

/// The head in shared memory.
struct Head<T> {
    places: u32,
    input: Shared<T>,
    sums: Shared<T>,
    /// [`BUSIEST`] sums of each warp.
    busiest: Shared<T>,
}

impl<T: Real> Head<T> {
    #[inline(always)]
    fn open<C: Cta>(cta: &C, args: &HeadedArgs<'_, T>) -> Self {
        let places = args.order.len() as u32;
        let warps = cta.threads() / WARP;
        let head = Head {
            places,
            input: Shared::at(0, places),
            sums: Shared::at(places * T::SIZE, places),
            busiest: Shared::at(2 * places * T::SIZE, BUSIEST * warps),
        };
        each_of_block(cta, places, |place| {
            let column: u32 = cta.load(args.order, place, Cache::Once);
            let y: T = cta.load(args.x.input, column as usize, Cache::Keep);
            cta.shared_write(head.input, place, y);
            cta.shared_write(head.sums, place, T::ZERO);
        });
        each_of_block(cta, BUSIEST * warps, |place| {
            cta.shared_write(head.busiest, place, T::ZERO);
        });
        cta.sync();
        head
    }

    /// The element of y that an index names.
    #[inline(always)]
    fn input<C: Cta>(&self, cta: &C, args: &HeadedArgs<'_, T>, index: u32) -> T {
        if index & HEAD != 0 {
            cta.shared_read(self.input, (index ^ HEAD) as usize)
        } else {
            cta.load(args.x.input, index as usize, Cache::Keep)
        }
    }

    #[inline(always)]
    fn add<C: Cta>(&self, cta: &C, args: &HeadedArgs<'_, T>, index: u32, value: T) {
        let place = index ^ HEAD;
        if index & HEAD == 0 {
            cta.add(args.x.output, index as usize, value);
        } else if place < BUSIEST {
            let own = cta.thread() / WARP * BUSIEST;
            cta.shared_add(self.busiest, (own + place) as usize, value);
        } else {
            cta.shared_add(self.sums, place as usize, value);
        }
    }

    /// Adds the sums to w.
    #[inline(always)]
    fn flush<C: Cta>(self, cta: &C, args: &HeadedArgs<'_, T>) {
        cta.sync();
        each_of_block(cta, self.places, |place| {
            let mut sum = cta.shared_read(self.sums, place);
            if (place as u32) < BUSIEST {
                for warp in 0..cta.threads() / WARP {
                    let own = (warp * BUSIEST) as usize + place;
                    sum = sum + cta.shared_read(self.busiest, own);
                }
            }
            if sum != T::ZERO {
                let column: u32 = cta.load(args.order, place, Cache::Once);
                cta.add(args.x.output, column as usize, sum);
            }
        });
        // The block's sums of losses take the same memory.
        cta.sync();
    }
}

/// One lane's share of a row: from `from` in steps of VS, the first K of it in registers.
struct Share<T, const K: usize> {
    from: u32,
    end: u32,
    indices: [u32; K],
    values: [T; K],
}

impl<T: Real, const K: usize> Share<T, K> {
    #[inline(always)]
    fn load<C: Cta, const VS: u32>(cta: &C, x: &SparseArgs<'_, T>, row: u32) -> Self {
        let mut share = Share {
            from: 0,
            end: 0,
            indices: [0; K],
            values: [T::ZERO; K],
        };
        if row < x.rows {
            let start: u32 = cta.load(x.offsets, row as usize, Cache::Keep);
            share.from = start + lane(cta) % VS;
            share.end = cta.load(x.offsets, row as usize + 1, Cache::Keep);
        }
        for k in 0..K {
            let i = share.from + VS * k as u32;
            if i < share.end {
                share.indices[k] = cta.load(x.indices, i as usize, Cache::Once);
                share.values[k] = cta.load(x.values, i as usize, Cache::Once);
            }
        }
        share
    }

    #[inline(always)]
    fn each<C: Cta, const VS: u32>(
        &self,
        cta: &C,
        x: &SparseArgs<'_, T>,
        mut each: impl FnMut(u32, T),
    ) {
        for k in 0..K {
            if self.from + VS * (k as u32) < self.end {
                each(self.indices[k], self.values[k]);
            }
        }
        let mut i = self.from + VS * K as u32;
        while i < self.end {
            let index = cta.load(x.indices, i as usize, Cache::Keep);
            each(index, cta.load(x.values, i as usize, Cache::Keep));
            i += VS;
        }
    }
}

/// The body of all entries with a head.
#[inline(always)]
pub(super) fn objective<C, T, L, const VS: u32, const K: usize>(
    cta: &C,
    args: &ObjectiveArgs<'_, T, HeadedArgs<'_, T>>,
) where
    C: Cta,
    T: Elementary,
    L: Compiled<T>,
{
    let ObjectiveArgs { x: headed, rows } = args;
    if is_over(cta, rows.solve) {
        return;
    }
    let x = &headed.x;
    let head = Head::open(cta, headed);
    let mut judge = judge_of::<C, T, L, VS>(cta, rows, x.rows);
    let (mut first, step) = first_and_step::<C, VS>(cta);
    while first < x.rows as u64 {
        let row = first as u32 + lane(cta) / VS;
        first += step;
        let early = judge.early(cta, row);
        let share = Share::<T, K>::load::<C, VS>(cta, x, row);
        let mut dot = T::ZERO;
        share.each::<C, VS>(cta, x, |index, value| {
            dot = value.fma(head.input(cta, headed, index), dot);
        });
        let dot = sum_lanes::<C, T, VS>(cta, dot);
        if row >= x.rows {
            continue;
        }
        let slope = judge.factor(cta, row, dot, early);
        if slope != T::ZERO {
            share.each::<C, VS>(cta, x, |index, value| {
                head.add(cta, headed, index, value * slope);
            });
        }
    }
    head.flush(cta, headed);
    judge.finish(cta);
}

#[inline(always)]
fn judge_of<'a, 'b, C, T, L, const VS: u32>(
    cta: &C,
    args: &'b RowArgs<'a, T>,
    rows: u32,
) -> Judge<'a, 'b, T, L, VS>
where
    C: Cta,
    T: Elementary,
    L: Compiled<T>,
{
    Judge::new(cta, args, L::of(args), rows as u64)
}
