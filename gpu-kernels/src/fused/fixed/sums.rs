//! Fixed-point sums in a block's shared memory: plane after plane of 32-bit words.

use core::marker::PhantomData;

use crate::cta::{Cta, Shared};
use crate::fused::fixed::point::{Fixed, FixedPoint};
use crate::memory::Out;
use crate::verbs::each_of_block;

/// A sum for each of some columns, and spare ones that nobody reads.
pub(crate) struct SharedSums<T> {
    words: Shared<u32>,
    /// Words of a plane.
    stride: u32,
    cols: u32,
    number: PhantomData<T>,
}

impl<T: FixedPoint> SharedSums<T> {
    /// `cols` sums of zero from byte `byte` on, and `spare` more; a barrier must follow.
    #[inline(always)]
    pub(crate) fn open<C: Cta>(cta: &C, byte: u32, (cols, spare): (u32, u32)) -> Self {
        let stride = cols + spare;
        let words = Shared::at(byte, T::WORDS * stride);
        each_of_block(cta, words.len(), |i| cta.shared_write(words, i, 0));
        SharedSums {
            words,
            stride,
            cols,
            number: PhantomData,
        }
    }

    /// Adds to a column's sum.
    #[inline(always)]
    pub(crate) fn add<C: Cta>(&self, cta: &C, column: u32, value: T) {
        let fixed = value.to_fixed();
        if T::WORDS == 2 {
            return self.add_pair(cta, 0, column, fixed.high);
        }
        let before = cta.shared_fetch_add(self.words, self.word_of(0, column), fixed.low);
        let carry = (before.wrapping_add(fixed.low) < fixed.low) as i64;
        self.add_pair(cta, 1, column, fixed.high + carry);
    }

    /// The same for the sum that is at its place in the shared memory of block `rank` of the cluster.
    ///
    /// A body that served both would have [`add`](Self::add) compute the addresses of the two words apart: an instruction
    /// more for each addition where y lies before the sums.
    #[inline(always)]
    pub(crate) fn add_to<C: Cta>(&self, cta: &C, rank: u32, column: u32, value: T) {
        let carry_of = |plane: u32, word: u32| {
            let at = self.word_of(plane, column);
            let before = cta.shared_fetch_add_to(rank, self.words, at, word);
            (before.wrapping_add(word) < word) as u32
        };
        let Fixed { mut high, low } = value.to_fixed();
        if T::WORDS == 3 {
            high += carry_of(0, low) as i64;
        }
        let carry = carry_of(T::WORDS - 2, high as u32);
        let upper = ((high >> 32) as u32).wrapping_add(carry);
        if upper != 0 {
            carry_of(T::WORDS - 1, upper);
        }
    }

    /// Adds each of several numbers to a column's sum, or to a spare one. All lowest words come first, so that their round
    /// trips overlap; the highest ones of two numbers, most of which are zero, share a branch.
    #[inline(always)]
    pub(crate) fn add_each<C: Cta, const N: usize>(
        &self,
        cta: &C,
        columns: [u32; N],
        values: [T; N],
    ) {
        let mut numbers = values.map(T::to_fixed);
        if T::WORDS == 3 {
            let low = numbers.map(|number| number.low);
            let carries = self.add_words(cta, 0, &columns, &low);
            for k in 0..N {
                numbers[k].high += carries[k] as i64;
            }
        }
        let plane = T::WORDS - 2;
        let middle = numbers.map(|number| number.high as u32);
        let carries = self.add_words(cta, plane, &columns, &middle);
        let mut upper = [0; N];
        for k in 0..N {
            upper[k] = ((numbers[k].high >> 32) as u32).wrapping_add(carries[k]);
        }
        for k in (0..N).step_by(2) {
            let pair = k..N.min(k + 2);
            if pair.clone().fold(0, |any, k| any | upper[k]) != 0 {
                for k in pair {
                    cta.shared_fetch_add(self.words, self.word_of(plane + 1, columns[k]), upper[k]);
                }
            }
        }
    }

    /// Adds words to those of a plane; returns what is carried.
    #[inline(always)]
    fn add_words<C: Cta, const N: usize>(
        &self,
        cta: &C,
        plane: u32,
        columns: &[u32; N],
        words: &[u32; N],
    ) -> [u32; N] {
        let mut before = [0; N];
        for k in 0..N {
            before[k] = cta.shared_fetch_add(self.words, self.word_of(plane, columns[k]), words[k]);
        }
        let mut carries = [0; N];
        for k in 0..N {
            carries[k] = (before[k].wrapping_add(words[k]) < words[k]) as u32;
        }
        carries
    }

    /// Where a column's word of a plane is.
    #[inline(always)]
    fn word_of(&self, plane: u32, column: u32) -> usize {
        (plane * self.stride + column) as usize
    }

    /// Adds a 64-bit number to the words in planes `plane` and `plane + 1`. The order of other threads' additions
    /// between the two does not matter: a carry belongs to the addition that made it.
    #[inline(always)]
    fn add_pair<C: Cta>(&self, cta: &C, plane: u32, column: u32, value: i64) {
        let low = value as u32;
        let before = cta.shared_fetch_add(self.words, self.word_of(plane, column), low);
        let carry = (before.wrapping_add(low) < low) as u32;
        let high = ((value >> 32) as u32).wrapping_add(carry);
        if high != 0 {
            cta.shared_fetch_add(self.words, self.word_of(plane + 1, column), high);
        }
    }

    #[inline(always)]
    fn word<C: Cta>(&self, cta: &C, plane: u32, column: u32) -> u64 {
        cta.shared_read(self.words, self.word_of(plane, column)) as u64
    }

    /// Adds the block's sums to those of all, LIMBS words of 64 bits for each column.
    #[inline(always)]
    pub(crate) fn flush<C: Cta>(self, cta: &C, sums: Out<'_, u64>) {
        cta.sync();
        each_of_block(cta, self.cols, |j| {
            let (first, place) = (T::WORDS - 2, j as u32);
            let at = j * T::LIMBS;
            let high = self.word(cta, first + 1, place) << 32 | self.word(cta, first, place);
            cta.add_wrapping(sums, at, high);
            if T::LIMBS == 2 {
                cta.add_wrapping(sums, at + 1, self.word(cta, 0, place));
            }
        });
    }

    /// Adds the first `count` of the block's sums to those of all, of the columns that `column_of` makes of their numbers; a barrier
    /// came before. For blocks whose rows are few: most of their sums are 0, and these are left out, a test that costs more than the
    /// additions where they are not (1,025 us became 1,074 in hot columns of f64 on an H100).
    #[inline(always)]
    pub(crate) fn flush_added_as<C: Cta>(
        &self,
        cta: &C,
        sums: Out<'_, u64>,
        count: u32,
        column_of: impl Fn(usize) -> usize,
    ) {
        each_of_block(cta, count, |j| {
            let (first, place) = (T::WORDS - 2, j as u32);
            let high = self.word(cta, first + 1, place) << 32 | self.word(cta, first, place);
            let low = if T::LIMBS == 2 {
                self.word(cta, 0, place)
            } else {
                0
            };
            if high | low == 0 {
                return;
            }
            let at = column_of(j) * T::LIMBS;
            cta.add_wrapping(sums, at, high);
            if T::LIMBS == 2 {
                cta.add_wrapping(sums, at + 1, low);
            }
        });
    }
}
