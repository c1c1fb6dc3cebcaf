//! Few dimensions, one weight vector: the pairs of a block's targets with the sources of its slice. Where targets and sources are the
//! same, [`exchange`](super::exchange) computes each pair once.
//!
//! Formula: `partials[slice][i] = Σⱼ k(xᵢ, yⱼ) · wⱼ` over the slice's sources.
//!
//! Mapping: a thread holds [`HELD`] targets in registers, `threads` apart. Sources are staged through shared
//! memory, `4 · threads` at a time, as records of point and weight that are read 16 bytes at a time. Sums of a stage are
//! of type T, those of stages f64: the error does not grow with N.
//!
//! Shared bytes: `stage` records. Missing dimensions of x and y are zero. Determinism: the same bits for the same launch.
//! Source: the tiling of all-pairs kernels is Nyland, Harris and Prins, "Fast N-Body Simulation with CUDA", GPU Gems
//! 3, ch. 31, 2007.

use super::{Function, KernelSumArgs, Radial, slice_of};
use crate::cta::{Cache, Cta, Shared};
use crate::memory::In;
use crate::scalar::Words;
use crate::verbs::each_of_block;

/// Targets of a thread.
pub const HELD: usize = 8;

/// Sources that a block of `block` threads stages at a time.
pub const fn stage(block: u32) -> u32 {
    4 * block
}

/// Elements of a record of a point and its weight: whole 16-byte packs of elements of `size` bytes.
pub const fn record(dims: u32, size: u32) -> u32 {
    (dims + 1).next_multiple_of(16 / size)
}

/// The most elements of a record.
pub(super) const RECORD: usize = 4;
/// Sources that the compiler sees together.
pub(super) const UNROLLED: u32 = 4;

/// One weight vector, any two sets of points.
#[inline(always)]
pub fn plain<C: Cta, T: Radial, K: Function<T>, const D: usize>(
    cta: &C,
    args: &KernelSumArgs<'_, T>,
) {
    let tiles = args.targets.div_ceil(cta.threads() * HELD as u32);
    let slice = cta.block() / tiles;
    let targets = Held::<T, D>::load(cta, args, cta.block() % tiles);
    let (from, end) = slice_of(args.sources, args.slices, slice);
    let sums = targets.sum_over::<C, K>(cta, args, from, end);
    for (r, sum) in sums.into_iter().enumerate() {
        let i = targets.index(cta, r);
        if i < args.targets {
            let at = slice as usize * args.targets as usize + i as usize;
            cta.write(args.partials, at, sum);
        }
    }
}

/// A thread's targets.
pub(super) struct Held<T, const D: usize> {
    tile: u32,
    pub points: [[T; D]; HELD],
}

impl<T: Radial, const D: usize> Held<T, D> {
    #[inline(always)]
    pub(super) fn load<C: Cta>(cta: &C, args: &KernelSumArgs<'_, T>, tile: u32) -> Self {
        let mut held = Held {
            tile,
            points: [[T::ZERO; D]; HELD],
        };
        for r in 0..HELD {
            let i = held.index(cta, r);
            for d in 0..D {
                held.points[r][d] = coordinate(cta, args, args.x, args.targets, d, i);
            }
        }
        held
    }

    /// Number of the thread's target `r`; may be beyond the last.
    #[inline(always)]
    pub(super) fn index<C: Cta>(&self, cta: &C, r: usize) -> u32 {
        (self.tile * HELD as u32 + r as u32) * cta.threads() + cta.thread()
    }

    /// The sums of the thread's targets over the sources `from..end`.
    #[inline(always)]
    pub(super) fn sum_over<C: Cta, K: Function<T>>(
        &self,
        cta: &C,
        args: &KernelSumArgs<'_, T>,
        from: u32,
        end: u32,
    ) -> [f64; HELD] {
        let stage = Stage::<T, D>::new(cta);
        let mut sums = [0.0; HELD];
        let mut at = from;
        while at < end {
            stage.fill(cta, args, at, end);
            let mut part = [T::ZERO; HELD];
            let mut j = 0;
            while j < stage.len {
                for next in 0..UNROLLED {
                    self.add_source::<C, K>(cta, &stage, j + next, &mut part);
                }
                j += UNROLLED;
            }
            for r in 0..HELD {
                sums[r] += part[r].to_f64();
            }
            at += stage.len;
        }
        sums
    }

    /// Adds one source to the sums.
    #[inline(always)]
    fn add_source<C: Cta, K: Function<T>>(
        &self,
        cta: &C,
        stage: &Stage<T, D>,
        j: u32,
        part: &mut [T; HELD],
    ) {
        let (point, weight) = stage.read(cta, j);
        for r in 0..HELD {
            part[r] = self.pair::<K>(r, &point).fma(weight, part[r]);
        }
    }

    /// k of target `r` and a source.
    #[inline(always)]
    pub(super) fn pair<K: Function<T>>(&self, r: usize, point: &[T; D]) -> T {
        let mut s = T::ZERO;
        for d in 0..D {
            s = K::accumulate(self.points[r][d] - point[d], s);
        }
        K::value(s)
    }

    /// Weights of the thread's targets; those beyond the last have none.
    #[inline(always)]
    pub(super) fn weights<C: Cta>(&self, cta: &C, args: &KernelSumArgs<'_, T>) -> [T; HELD] {
        core::array::from_fn(|r| {
            let i = self.index(cta, r);
            if i < args.targets {
                cta.load(args.w, i as usize, Cache::Keep)
            } else {
                T::ZERO
            }
        })
    }
}

/// Sources in shared memory: records of point and weight.
pub(super) struct Stage<T, const D: usize> {
    pub records: Shared<T>,
    /// Sources.
    pub len: u32,
}

impl<T: Radial, const D: usize> Stage<T, D> {
    /// Elements of a record.
    const EACH: u32 = record(D as u32, T::SIZE);

    #[inline(always)]
    pub(super) fn new<C: Cta>(cta: &C) -> Self {
        let len = stage(cta.threads());
        let records = Shared::at(0, len * Self::EACH);
        Stage { records, len }
    }

    /// Loads the sources from `at` on, between two barriers; behind `end` there are points without weight.
    #[inline(always)]
    pub(super) fn fill<C: Cta>(&self, cta: &C, args: &KernelSumArgs<'_, T>, at: u32, end: u32) {
        cta.sync();
        each_of_block(cta, self.len, |k| {
            let j = at + k as u32;
            let mut record = [T::ZERO; RECORD];
            if j < end {
                for d in 0..D {
                    record[d] = coordinate(cta, args, args.y, args.sources, d, j);
                }
                record[D] = cta.load(args.w, j as usize, Cache::Keep);
            }
            for e in 0..Self::EACH as usize {
                cta.shared_write(self.records, k * Self::EACH as usize + e, record[e]);
            }
        });
        cta.sync();
    }

    /// Source `j`: its point and its weight.
    #[inline(always)]
    pub(super) fn read<C: Cta>(&self, cta: &C, j: u32) -> ([T; D], T) {
        read_record(cta, self.records, j)
    }
}

/// The point and the weight of a record.
#[inline(always)]
pub(super) fn read_record<C: Cta, T: Radial, const D: usize>(
    cta: &C,
    records: Shared<T>,
    place: u32,
) -> ([T; D], T) {
    let each = record(D as u32, T::SIZE);
    let mut record = [T::ZERO; RECORD];
    for part in 0..each as usize / T::Pack::LANES {
        let first = part * T::Pack::LANES;
        let pack = cta.shared_read_pack(records, (place * each) as usize + first);
        for l in 0..T::Pack::LANES {
            record[first + l] = pack.as_ref()[l];
        }
    }
    (core::array::from_fn(|d| record[d]), record[D])
}

/// Coordinate `d` of point `i` of `len`; zero where the points have no such dimension or there is no such point.
#[inline(always)]
pub(super) fn coordinate<C: Cta, T: Radial>(
    cta: &C,
    args: &KernelSumArgs<'_, T>,
    points: In<'_, T>,
    len: u32,
    d: usize,
    i: u32,
) -> T {
    if (d as u32) < args.dims && i < len {
        cta.load(points, d * len as usize + i as usize, Cache::Keep)
    } else {
        T::ZERO
    }
}
