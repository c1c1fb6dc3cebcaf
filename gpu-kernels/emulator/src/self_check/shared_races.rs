//! Shared memory touched by several threads with no barrier in between.

use gpu_kernels::cta::Shared;
use gpu_kernels::verbs::{FULL, sum_lanes};
use gpu_kernels::{Cta, Shuffle};

use super::case::Attempt::Body;
use super::case::{BLOCK, Case, Source, THREADS, WARP};
use crate::Diagnosis::Race;

pub(super) const SOURCE: Source = Source {
    file: file!(),
    text: include_str!("shared_races.rs"),
};

/// One word per thread.
fn words<C: Cta>(cta: &C) -> Shared<f32> {
    Shared::at(0, cta.threads())
}

/// This thread's word, and that of the next thread.
fn own_and_next<C: Cta>(cta: &C) -> (usize, usize) {
    let next = (cta.thread() + 1) % cta.threads();
    (cta.thread() as usize, next as usize)
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "missing barrier",
        expects: Race,
        broken: Body(BLOCK, |cta, _| {
            let (own, next) = own_and_next(cta);
            cta.shared_write(words(cta), own, 1.0); //~ missing barrier
            cta.shared_read(words(cta), next); //~ missing barrier
        }),
        twin: Body(BLOCK, |cta, _| {
            let (own, next) = own_and_next(cta);
            cta.shared_write(words(cta), own, 1.0);
            cta.sync();
            cta.shared_read(words(cta), next);
        }),
    },
    Case {
        name: "scratch reused without a second barrier",
        expects: Race,
        broken: Body(BLOCK, |cta, _| {
            let (own, next) = own_and_next(cta);
            for round in 0..2 {
                cta.shared_write(words(cta), own, round as f32); //~ scratch reused without a second barrier
                cta.sync();
                cta.shared_read(words(cta), next); //~ scratch reused without a second barrier
            }
        }),
        twin: Body(BLOCK, |cta, _| {
            let (own, next) = own_and_next(cta);
            for round in 0..2 {
                cta.shared_write(words(cta), own, round as f32);
                cta.sync();
                cta.shared_read(words(cta), next);
                cta.sync();
            }
        }),
    },
    Case {
        name: "alternating halves that do not alternate",
        expects: Race,
        broken: Body(BLOCK, |cta, _| alternate(cta, |_| 0)),
        twin: Body(BLOCK, |cta, _| alternate(cta, |turn| turn % 2)),
    },
    Case {
        name: "warp taken for a barrier",
        expects: Race,
        broken: Body(WARP, |cta, _| {
            let (own, next) = own_and_next(cta);
            cta.shared_write(words(cta), own, 1.0); //~ warp taken for a barrier
            cta.shared_read(words(cta), next); //~ warp taken for a barrier
        }),
        twin: Body(WARP, |cta, _| {
            let (own, next) = own_and_next(cta);
            let value = own as f32;
            cta.shared_write(words(cta), own, value);
            cta.shuffle(value, Shuffle::Index(next as u32), 32, FULL);
        }),
    },
    Case {
        name: "shuffle taken for a barrier",
        expects: Race,
        broken: Body(WARP, |cta, _| {
            let (own, next) = own_and_next(cta);
            cta.shared_write(words(cta), own, 1.0); //~ shuffle taken for a barrier
            sum_lanes::<_, f32, 32>(cta, 1.0);
            cta.shared_read(words(cta), next); //~ shuffle taken for a barrier
        }),
        twin: Body(WARP, |cta, _| {
            let (own, next) = own_and_next(cta);
            cta.shared_write(words(cta), own, 1.0);
            sum_lanes::<_, f32, 32>(cta, 1.0);
            cta.sync();
            cta.shared_read(words(cta), next);
        }),
    },
    Case {
        name: "barrier of a warp taken for one of the block",
        expects: Race,
        broken: Body(BLOCK, |cta, _| {
            let (own, next) = own_and_next(cta);
            cta.shared_write(words(cta), own, 1.0); //~ barrier of a warp taken for one of the block
            cta.sync_warp();
            cta.shared_read(words(cta), next); //~ barrier of a warp taken for one of the block
        }),
        twin: Body(WARP, |cta, _| {
            let (own, next) = own_and_next(cta);
            for round in 0..3 {
                cta.shared_write(words(cta), own, round as f32);
                cta.sync_warp();
                cta.shared_read(words(cta), next);
                cta.sync_warp();
            }
        }),
    },
    Case {
        name: "racy flush",
        expects: Race,
        broken: Body(BLOCK, |cta, data| {
            let (sum, (own, _)) = (words(cta), own_and_next(cta));
            cta.shared_write(sum, own, 0.0);
            cta.sync();
            cta.shared_add(sum, 0, 1.0); //~ racy flush
            if own == 0 {
                cta.add(data.out, 0, cta.shared_read(sum, 0)); //~ racy flush
            }
        }),
        twin: Body(BLOCK, |cta, data| {
            let (sum, (own, _)) = (words(cta), own_and_next(cta));
            cta.shared_write(sum, own, 0.0);
            cta.sync();
            cta.shared_add(sum, 0, 1.0);
            cta.sync();
            if own == 0 {
                cta.add(data.out, 0, cta.shared_read(sum, 0));
            }
        }),
    },
    Case {
        name: "atomics mixed with plain stores",
        expects: Race,
        broken: Body(BLOCK, |cta, _| {
            let sum = Shared::at(0, 1);
            if cta.thread() == 0 {
                cta.shared_write(sum, 0, 0.0f32); //~ atomics mixed with plain stores
            }
            cta.shared_add(sum, 0, 1.0); //~ atomics mixed with plain stores
        }),
        twin: Body(BLOCK, |cta, _| {
            let sum = Shared::at(0, 1);
            if cta.thread() == 0 {
                cta.shared_write(sum, 0, 0.0f32);
            }
            cta.sync();
            cta.shared_add(sum, 0, 1.0);
        }),
    },
    Case {
        name: "all threads store the same",
        expects: Race,
        broken: Body(BLOCK, |cta, _| {
            cta.shared_write(words(cta), 0, 1.0); //~ all threads store the same
        }),
        twin: Body(BLOCK, |cta, _| {
            if cta.thread() == 0 {
                cta.shared_write(words(cta), 0, 1.0);
            }
        }),
    },
    Case {
        name: "tree without a barrier per level",
        expects: Race,
        broken: Body(BLOCK, |cta, _| {
            let (sums, own) = (words(cta), cta.thread());
            cta.shared_write(sums, own as usize, 1.0);
            cta.sync();
            let mut half = THREADS / 2;
            while half > 0 {
                if own < half {
                    let other = cta.shared_read(sums, (own + half) as usize); //~ tree without a barrier per level
                    let sum = cta.shared_read(sums, own as usize) + other; //~ tree without a barrier per level
                    cta.shared_write(sums, own as usize, sum); //~ tree without a barrier per level
                }
                half /= 2;
            }
        }),
        twin: Body(BLOCK, |cta, _| {
            let (sums, own) = (words(cta), cta.thread());
            cta.shared_write(sums, own as usize, 1.0);
            cta.sync();
            let mut half = THREADS / 2;
            while half > 0 {
                if own < half {
                    let other = cta.shared_read(sums, (own + half) as usize);
                    let sum = cta.shared_read(sums, own as usize) + other;
                    cta.shared_write(sums, own as usize, sum);
                }
                cta.sync();
                half /= 2;
            }
        }),
    },
];

/// Sums a value over the warps three times with one barrier each, in the half that `half(turn)` names.
fn alternate<C: Cta>(cta: &C, half: fn(u32) -> u32) {
    let warps = cta.threads() / 32;
    let scratch: Shared<f32> = Shared::at(0, 2 * warps);
    for turn in 0..3 {
        let at = |warp: u32| (half(turn) * warps + warp) as usize;
        if cta.thread().is_multiple_of(32) {
            cta.shared_write(scratch, at(cta.thread() / 32), 1.0); //~ alternating halves that do not alternate
        }
        cta.sync();
        for warp in 0..warps {
            cta.shared_read(scratch, at(warp)); //~ alternating halves that do not alternate
        }
    }
}
