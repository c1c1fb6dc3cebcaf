//! Barriers, shuffles and votes that some lanes miss.

use gpu_kernels::verbs::FULL;
use gpu_kernels::{Cta, Shuffle};

use super::case::Attempt::Body;
use super::case::{BLOCK, Case, Source, WARP};
use crate::Diagnosis::{AbsentLane, DivergentBarrier, ShuffleWidth};

pub(super) const SOURCE: Source = Source {
    file: file!(),
    text: include_str!("collectives.rs"),
};

const LOW_HALF: u32 = 0xffff;

pub(super) const CASES: &[Case] = &[
    Case {
        name: "barrier in a branch",
        expects: DivergentBarrier,
        broken: Body(BLOCK, |cta, _| {
            if cta.thread() < 40 {
                cta.sync(); //~ barrier in a branch
            }
        }),
        twin: Body(BLOCK, |cta, _| {
            if cta.block() < 40 {
                cta.sync();
            }
        }),
    },
    Case {
        name: "return before a barrier",
        expects: DivergentBarrier,
        broken: Body(BLOCK, |cta, data| {
            if cta.thread() >= 63 {
                return;
            }
            cta.write(data.out, cta.thread() as usize, 1.0);
            cta.sync(); //~ return before a barrier
        }),
        twin: Body(BLOCK, |cta, data| {
            if cta.thread() < 63 {
                cta.write(data.out, cta.thread() as usize, 1.0);
            }
            cta.sync();
        }),
    },
    Case {
        name: "one barrier in each branch",
        expects: DivergentBarrier,
        broken: Body(BLOCK, |cta, _| {
            if cta.thread().is_multiple_of(2) {
                cta.sync(); //~ one barrier in each branch
            } else {
                cta.sync(); //~ one barrier in each branch
            }
        }),
        twin: Body(BLOCK, |cta, _| {
            if cta.block().is_multiple_of(2) {
                cta.sync();
            } else {
                cta.sync();
            }
        }),
    },
    Case {
        name: "rounds of a barrier differ",
        expects: DivergentBarrier,
        broken: Body(BLOCK, |cta, _| {
            for _ in 0..1 + cta.thread() / 32 {
                cta.sync(); //~ rounds of a barrier differ
            }
        }),
        twin: Body(BLOCK, |cta, _| {
            for _ in 0..1 + cta.threads() / 32 {
                cta.sync();
            }
        }),
    },
    Case {
        name: "wrong mask",
        expects: AbsentLane,
        broken: Body(WARP, |cta, _| {
            cta.shuffle(1.0f32, Shuffle::Xor(1), 32, LOW_HALF); //~ wrong mask
        }),
        twin: Body(WARP, |cta, _| {
            if cta.thread() < 16 {
                cta.shuffle(1.0f32, Shuffle::Xor(1), 32, LOW_HALF);
            }
        }),
    },
    Case {
        name: "source outside the mask",
        expects: AbsentLane,
        broken: Body(WARP, |cta, _| {
            if cta.thread() < 16 {
                cta.shuffle(1.0f32, Shuffle::Xor(16), 32, LOW_HALF); //~ source outside the mask
            }
        }),
        twin: Body(WARP, |cta, _| {
            if cta.thread() < 16 {
                cta.shuffle(1.0f32, Shuffle::Xor(8), 32, LOW_HALF);
            }
        }),
    },
    Case {
        name: "shuffle from a lane that has ended",
        expects: AbsentLane,
        broken: Body(WARP, |cta, _| {
            if cta.thread() >= 20 {
                return;
            }
            cta.shuffle(1.0f32, Shuffle::Down(1), 32, FULL); //~ shuffle from a lane that has ended
        }),
        twin: Body(WARP, |cta, _| {
            cta.shuffle(1.0f32, Shuffle::Down(1), 32, FULL);
        }),
    },
    Case {
        name: "shuffle while others wait at a barrier",
        expects: AbsentLane,
        broken: Body(WARP, |cta, _| {
            if cta.thread() < 16 {
                cta.shuffle(1.0f32, Shuffle::Xor(1), 32, FULL); //~ shuffle while others wait at a barrier
            }
            cta.sync();
        }),
        twin: Body(WARP, |cta, _| {
            if cta.thread() < 16 {
                cta.shuffle(1.0f32, Shuffle::Xor(1), 32, LOW_HALF);
            }
            cta.sync();
        }),
    },
    Case {
        name: "masks that differ",
        expects: AbsentLane,
        broken: Body(WARP, |cta, _| {
            let members = if cta.thread() < 16 { FULL } else { !LOW_HALF };
            cta.shuffle(1.0f32, Shuffle::Xor(1), 16, members); //~ masks that differ
        }),
        twin: Body(WARP, |cta, _| {
            let members = if cta.thread() < 16 {
                LOW_HALF
            } else {
                !LOW_HALF
            };
            cta.shuffle(1.0f32, Shuffle::Xor(1), 16, members);
        }),
    },
    Case {
        name: "shuffle against a vote",
        expects: AbsentLane,
        broken: Body(WARP, |cta, _| {
            if cta.thread() < 16 {
                cta.shuffle(1.0f32, Shuffle::Xor(1), 32, FULL); //~ shuffle against a vote
            } else {
                cta.ballot(true, FULL); //~ shuffle against a vote
            }
        }),
        twin: Body(WARP, |cta, _| {
            if cta.thread() < 16 {
                cta.shuffle(1.0f32, Shuffle::Xor(1), 32, LOW_HALF);
            } else {
                cta.ballot(true, !LOW_HALF);
            }
        }),
    },
    Case {
        name: "rounds of a shuffle differ",
        expects: AbsentLane,
        broken: Body(WARP, |cta, _| {
            for _ in 0..1 + cta.thread() / 16 {
                cta.ballot(true, FULL); //~ rounds of a shuffle differ
            }
        }),
        twin: Body(WARP, |cta, _| {
            for _ in 0..1 + cta.threads() / 16 {
                cta.ballot(true, FULL);
            }
        }),
    },
    Case {
        name: "width that is no power of two",
        expects: ShuffleWidth,
        broken: Body(WARP, |cta, _| {
            cta.shuffle(1.0f32, Shuffle::Down(1), 24, FULL); //~ width that is no power of two
        }),
        twin: Body(WARP, |cta, _| {
            cta.shuffle(1.0f32, Shuffle::Down(1), 8, FULL);
        }),
    },
];
