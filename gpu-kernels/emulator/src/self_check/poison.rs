//! Memory read before anybody wrote it.

use gpu_kernels::Cta;
use gpu_kernels::cta::Shared;
use gpu_kernels::verbs::zero_shared;

use super::case::Attempt::Body;
use super::case::{BLOCK, Case, Source, TWO_BLOCKS};
use crate::Diagnosis::Uninitialised;

pub(super) const SOURCE: Source = Source {
    file: file!(),
    text: include_str!("poison.rs"),
};

/// One word per thread.
fn words<C: Cta>(cta: &C) -> Shared<f32> {
    Shared::at(0, cta.threads())
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "uninitialised scratch",
        expects: Uninitialised,
        broken: Body(BLOCK, |cta, _| {
            cta.shared_read(words(cta), cta.thread() as usize); //~ uninitialised scratch
        }),
        twin: Body(BLOCK, |cta, _| {
            zero_shared(cta, words(cta));
            cta.sync();
            cta.shared_read(words(cta), cta.thread() as usize);
        }),
    },
    Case {
        name: "sum never set to zero",
        expects: Uninitialised,
        broken: Body(BLOCK, |cta, _| {
            cta.shared_add(words(cta), cta.thread() as usize, 1.0); //~ sum never set to zero
        }),
        twin: Body(BLOCK, |cta, _| {
            zero_shared(cta, words(cta));
            cta.sync();
            cta.shared_add(words(cta), cta.thread() as usize, 1.0);
        }),
    },
    Case {
        name: "only half set to zero",
        expects: Uninitialised,
        broken: Body(BLOCK, |cta, _| {
            zero_shared(cta, Shared::<f32>::at(0, cta.threads() / 2));
            cta.sync();
            cta.shared_read(words(cta), cta.thread() as usize); //~ only half set to zero
        }),
        twin: Body(BLOCK, |cta, _| {
            zero_shared(cta, words(cta));
            cta.sync();
            cta.shared_read(words(cta), cta.thread() as usize);
        }),
    },
    Case {
        name: "scratch of the block before",
        expects: Uninitialised,
        broken: Body(TWO_BLOCKS, |cta, _| {
            if cta.block() == 0 {
                zero_shared(cta, words(cta));
            }
            cta.sync();
            cta.shared_read(words(cta), cta.thread() as usize); //~ scratch of the block before
        }),
        twin: Body(TWO_BLOCKS, |cta, _| {
            zero_shared(cta, words(cta));
            cta.sync();
            cta.shared_read(words(cta), cta.thread() as usize);
        }),
    },
    Case {
        name: "output read before it is written",
        expects: Uninitialised,
        broken: Body(BLOCK, |cta, data| {
            let sum = cta.read(data.raw, cta.thread() as usize) + 1.0; //~ output read before it is written
            cta.write(data.raw, cta.thread() as usize, sum);
        }),
        twin: Body(BLOCK, |cta, data| {
            cta.write(data.raw, cta.thread() as usize, 1.0);
            cta.read(data.raw, cta.thread() as usize);
        }),
    },
    Case {
        name: "sum in memory that was not cleared",
        expects: Uninitialised,
        broken: Body(TWO_BLOCKS, |cta, data| {
            cta.add(data.raw, cta.thread() as usize, 1.0); //~ sum in memory that was not cleared
        }),
        twin: Body(TWO_BLOCKS, |cta, data| {
            cta.add(data.out, cta.thread() as usize, 1.0);
        }),
    },
];
