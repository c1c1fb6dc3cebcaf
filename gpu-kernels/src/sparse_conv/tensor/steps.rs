//! Steps as a team's lanes load them.

use super::super::args::SparseConvArgs;
use super::super::element::Element;
use super::tile::{Pieces, ROWS};
use crate::cta::{Cache, Cta, Shuffle, WARP};
use crate::verbs::lane;

/// What a lane holds of a step.
#[derive(Clone, Copy)]
pub(super) struct Step<const P: usize> {
    pub(super) fragments: [[[u32; 4]; P]; ROWS],
    pub(super) metadata: [u32; ROWS],
}

impl<const P: usize> Step<P> {
    const NONE: Step<P> = Step {
        fragments: [[[0; 4]; P]; ROWS],
        metadata: [0; ROWS],
    };

    #[inline(always)]
    #[track_caller]
    fn load<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>, number: u32) -> Step<P> {
        let (from, lane, of) = (args.steps, lane(cta) as usize, Pieces::of::<E>(P));
        let first = number as usize * of.step_words();
        let mut step = Step::NONE;
        for row in 0..ROWS {
            for piece in 0..P {
                let at = first + (row * P + piece) * 128 + lane * 4;
                step.fragments[row][piece] = cta.load_pack(from, at, Cache::Keep);
            }
        }
        for row in 0..ROWS / E::PIECE_BYTES as usize {
            let at = first + of.fragments() + row * 32 + lane;
            step.metadata[row] = cta.load(from, at, Cache::Keep);
        }
        step
    }
}

/// The first of two lanes that have a step's offsets, and words of a line of the cache.
const OFFSETS: usize = 30;
const LINE: usize = 32;

/// Words of a step's cache lines, which brings them near: lanes, whose registers hold one step, load the next one late. The
/// last two lanes get its offsets.
#[inline(always)]
#[track_caller]
fn touch<C: Cta, E: Element, const P: usize>(
    cta: &C,
    args: &SparseConvArgs<'_, E>,
    number: u32,
) -> u32 {
    let of = Pieces::of::<E>(P);
    let (first, end) = (number as usize * of.step_words(), of.step_words() - 4);
    let warp = (cta.thread() / WARP % 4) as usize;
    let at = match lane(cta) as usize {
        // Each warp of a team touches every fourth line.
        lane if lane < OFFSETS => ((lane * 4 + warp) * LINE).min(end),
        lane => end + lane - OFFSETS,
    };
    cta.load(args.steps, first + at, Cache::Keep)
}

/// Words from a cell to the channels of this lane's tap of a step that was touched.
#[inline(always)]
#[track_caller]
fn offset<C: Cta>(cta: &C, touched: u32) -> u32 {
    let from = OFFSETS as u32 + lane(cta) / 16;
    cta.shuffle(touched, Shuffle::Index(from), WARP, u32::MAX) / 4
}

/// A team's steps.
pub(super) struct Steps<const W: usize, const TEAMS: u32> {
    /// The next one.
    pub(super) number: u32,
    /// The end of the block's.
    last: u32,
    /// The next one's.
    pub(super) step: Step<W>,
    pub(super) offset: u32,
    /// What was touched of the one after it.
    then: u32,
}

impl<const W: usize, const TEAMS: u32> Steps<W, TEAMS> {
    #[inline(always)]
    #[track_caller]
    pub(super) fn first<C: Cta, E: Element>(
        cta: &C,
        args: &SparseConvArgs<'_, E>,
        [number, last]: [u32; 2],
    ) -> Steps<W, TEAMS> {
        let mut steps = Steps {
            number,
            last,
            step: Step::NONE,
            offset: 0,
            then: 0,
        };
        if number < last {
            let own = touch::<C, E, W>(cta, args, number);
            steps.then = touch::<C, E, W>(cta, args, (number + TEAMS).min(last - 1));
            steps.step = Step::load(cta, args, number);
            steps.offset = offset(cta, own);
        }
        steps
    }

    /// Goes on from one that there is to the next one, which after the last is the last again: without a branch the
    /// assembler overlaps what is around it.
    #[inline(always)]
    #[track_caller]
    pub(super) fn advance<C: Cta, E: Element>(&mut self, cta: &C, args: &SparseConvArgs<'_, E>) {
        self.number += TEAMS;
        let held = |number: u32| number.min(self.last - 1);
        self.offset = offset(cta, self.then);
        self.then = touch::<C, E, W>(cta, args, held(self.number + TEAMS));
        self.step = Step::load(cta, args, held(self.number));
    }
}
