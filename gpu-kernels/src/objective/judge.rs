//! The step between a row's dot product and its addition to the gradient: loss, sums, g and d.
//!
//! Functions are inlined where that counts. Without optimisation every inlined copy of a variable has a place of its
//! own, which is more than the stack of an emulated lane holds.

use super::{Point, RowArgs, RowLoss};
use crate::cta::{Cache, Cta, Shared, Shuffle, WARP};
use crate::fused::dense::load::row_of;
use crate::fused::dense::step::TeamStep;
use crate::fused::sparse::RowStep;
use crate::fused::{Team, TeamSize};
use crate::math::Elementary;
use crate::memory::Out;
use crate::vector::is_last;
use crate::verbs::{FULL, each_of_block, lane, load_or, sum_block};

/// b, v and o of a row.
#[derive(Clone, Copy)]
pub(super) struct Given<T> {
    target: T,
    weight: T,
    offset: T,
}

impl<T: Elementary> Given<T> {
    /// Of a row that is not there: without weight.
    const NONE: Self = Given {
        target: T::ZERO,
        weight: T::ZERO,
        offset: T::ZERO,
    };
}

/// Judges rows with a loss, and adds up what this thread's rows contribute.
pub(super) struct Judge<'a, 'b, T, L, const VS: u32> {
    args: &'b RowArgs<'a, T>,
    loss: L,
    rows: u64,
    intercept: T,
    sums: Point<f64>,
}

impl<'a, 'b, T: Elementary, L: RowLoss<T>, const VS: u32> Judge<'a, 'b, T, L, VS> {
    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    pub fn new<C: Cta>(cta: &C, args: &'b RowArgs<'a, T>, loss: L, rows: u64) -> Self {
        let intercept = if args.intercept.is_some() {
            cta.load(args.intercept, 0, Cache::Keep)
        } else {
            T::ZERO
        };
        Judge {
            args,
            loss,
            rows,
            intercept,
            sums: Point {
                loss: 0.0,
                slope: 0.0,
                curvature: 0.0,
            },
        }
    }

    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    pub fn given<C: Cta>(&self, cta: &C, row: u64) -> Given<T> {
        if row >= self.rows {
            return Given::NONE;
        }
        let row = row as usize;
        Given {
            target: load_or(cta, self.args.target, row, T::ZERO),
            weight: self.args.scale * load_or(cta, self.args.weights, row, T::ONE),
            offset: load_or(cta, self.args.offset, row, T::ZERO),
        }
    }

    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    pub fn point(&self, dot: T, given: Given<T>) -> Point<T> {
        let t = dot + self.intercept + given.offset;
        self.loss.at(t, given.target).weighted(given.weight)
    }

    /// Counts a row, which one thread alone does.
    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    pub fn count<C: Cta>(&mut self, cta: &C, row: u64, point: Point<T>) {
        self.sums.loss += point.loss.to_f64();
        self.sums.slope += point.slope.to_f64();
        self.sums.curvature += point.curvature.to_f64();
        if self.args.residual.is_some() {
            cta.write(self.args.residual, row as usize, point.slope);
        }
        if self.args.curvature.is_some() {
            cta.write(self.args.curvature, row as usize, point.curvature);
        }
    }

    /// Adds the block's sums to the result; one f64 of shared memory per warp, free for it.
    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    pub fn finish<C: Cta>(self, cta: &C) {
        let scratch = Shared::at(0, cta.threads() / WARP);
        let Point {
            loss,
            slope,
            curvature,
        } = self.sums;
        let loss = sum_block(cta, loss, scratch);
        let slope = sum_block(cta, slope, scratch);
        let curvature = sum_block(cta, curvature, scratch);
        if cta.thread() == 0 {
            cta.add(self.args.sums, 0, loss);
            cta.add(self.args.sums, 1, slope);
            cta.add(self.args.sums, 2, curvature);
            if self.args.slope.is_some() {
                cta.add(self.args.slope, 0, T::of_f64(slope));
            }
        }
    }
}

impl<T: Elementary, L: RowLoss<T>> Judge<'_, '_, T, L, 1> {
    /// Adds the sums of all blocks to the result, in the order of the blocks; one f64 of shared memory per warp and a word.
    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    pub fn finish_in_order<C: Cta>(self, cta: &C, partials: Out<'_, f64>, counter: Out<'_, u32>) {
        let scratch = Shared::at(0, cta.threads() / WARP);
        let Point {
            loss,
            slope,
            curvature,
        } = self.sums;
        for (place, sum) in [loss, slope, curvature].into_iter().enumerate() {
            let sum = sum_block(cta, sum, scratch);
            if cta.thread() == 0 {
                cta.write(partials, cta.block() as usize * 3 + place, sum);
            }
        }
        if !is_last(cta, counter, Shared::at(cta.threads() / WARP * 8, 1)) {
            return;
        }
        for place in 0..3 {
            let mut sum = 0.0;
            each_of_block(cta, cta.blocks(), |block| {
                sum += cta.read(partials, block * 3 + place);
            });
            let sum = sum_block(cta, sum, scratch);
            if cta.thread() == 0 {
                cta.add(self.args.sums, place, sum);
                if place == 1 && self.args.slope.is_some() {
                    cta.add(self.args.slope, 0, T::of_f64(sum));
                }
            }
        }
    }
}

impl<T: Elementary, L: RowLoss<T>, const VS: u32> RowStep<T> for Judge<'_, '_, T, L, VS> {
    const DOTS: bool = true;
    const SKIPS: bool = true;
    type Early = Given<T>;

    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn early<C: Cta>(&self, cta: &C, row: u32) -> Given<T> {
        self.given(cta, row as u64)
    }

    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn factor<C: Cta>(&mut self, cta: &C, row: u32, dot: T, given: Given<T>) -> T {
        let point = self.point(dot, given);
        if lane(cta).is_multiple_of(VS) {
            self.count(cta, row as u64, point);
        }
        point.slope
    }
}

/// Lanes that share the judging of R rows: a team's, or a warp's where the team is the block.
const fn lanes(size: TeamSize) -> u32 {
    match size {
        TeamSize::Lanes(vs) => vs,
        TeamSize::Block => WARP,
    }
}

/// The R rows are shared out to the lanes, each of which judges one (or the ⌈R / VS⌉-th part of them) instead of
/// all: a loss takes some 50 to 200 instructions.
impl<T: Elementary, L: RowLoss<T>, const VS: u32> TeamStep<T> for Judge<'_, '_, T, L, VS> {
    const DOTS: bool = true;
    type Early<const R: usize> = [Given<T>; R];
    type Ready<const R: usize> = [T; R];

    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn open<C: Cta>(&mut self, _: &C) {}

    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn early<C: Cta, G: Team, const R: usize>(&self, cta: &C, first: u64) -> [Given<T>; R] {
        let share = lanes(G::SIZE) as usize;
        core::array::from_fn(|turn| {
            let i = turn * share + (lane(cta) as usize % share);
            if turn < R.div_ceil(share) && i < R {
                self.given(cta, row_of::<C, G>(cta, first, i))
            } else {
                Given::NONE
            }
        })
    }

    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn ready<C: Cta, G: Team, const R: usize>(
        &mut self,
        cta: &C,
        first: u64,
        dots: [T; R],
        early: [Given<T>; R],
    ) -> [T; R] {
        let share = lanes(G::SIZE) as usize;
        let mine = lane(cta) as usize % share;
        let counts = match G::SIZE {
            TeamSize::Lanes(_) => true,
            TeamSize::Block => cta.thread() < WARP,
        };
        let mut slopes = [T::ZERO; R];
        for turn in 0..R.div_ceil(share) {
            let i = turn * share + mine;
            let mut dot = T::ZERO;
            for (j, value) in dots.iter().enumerate() {
                if i == j {
                    dot = *value;
                }
            }
            let row = row_of::<C, G>(cta, first, i);
            let point = self.point(dot, early[turn]);
            slopes[turn] = point.slope;
            if i < R && row < self.rows && counts {
                self.count(cta, row, point);
            }
        }
        core::array::from_fn(|j| {
            let from = (lane(cta) - mine as u32) + (j % share) as u32;
            cta.shuffle(slopes[j / share], Shuffle::Index(from), WARP, FULL)
        })
    }

    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn factor<const R: usize>(&self, slopes: &[T; R], i: usize) -> T {
        slopes[i]
    }
}
