//! Global memory touched by several blocks, or by several threads with no barrier in between.

use gpu_kernels::verbs::global_thread;
use gpu_kernels::{Cache, Cta};

use super::case::Attempt::Body;
use super::case::{BLOCK, Case, Source, TWO_BLOCKS};
use crate::Diagnosis::{Race, ReadOnlyWritten};

pub(super) const SOURCE: Source = Source {
    file: file!(),
    text: include_str!("global_races.rs"),
};

/// Whether this thread is its block's first.
fn leads<C: Cta>(cta: &C) -> bool {
    cta.thread() == 0
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "two blocks write one word",
        expects: Race,
        broken: Body(TWO_BLOCKS, |cta, data| {
            if leads(cta) {
                cta.write(data.out, 0, 1.0); //~ two blocks write one word
            }
        }),
        twin: Body(TWO_BLOCKS, |cta, data| {
            if leads(cta) {
                cta.write(data.out, cta.block() as usize, 1.0);
            }
        }),
    },
    Case {
        name: "sum without atomics",
        expects: Race,
        broken: Body(TWO_BLOCKS, |cta, data| {
            let i = cta.thread() as usize;
            let sum = cta.read(data.out, i) + 1.0; //~ sum without atomics
            cta.write(data.out, i, sum); //~ sum without atomics
        }),
        twin: Body(TWO_BLOCKS, |cta, data| {
            cta.add(data.out, cta.thread() as usize, 1.0);
        }),
    },
    Case {
        name: "partial sum of another block",
        expects: Race,
        broken: Body(TWO_BLOCKS, |cta, data| {
            if leads(cta) {
                let own = cta.block() as usize;
                cta.write(data.raw, own, 1.0); //~ partial sum of another block
                cta.read(data.raw, 1 - own); //~ partial sum of another block
            }
        }),
        twin: Body(TWO_BLOCKS, |cta, data| {
            if leads(cta) {
                let own = cta.block() as usize;
                cta.write(data.raw, own, 1.0);
                cta.read(data.raw, own);
            }
        }),
    },
    Case {
        name: "barrier taken for one of the grid",
        expects: Race,
        broken: Body(TWO_BLOCKS, |cta, data| {
            let i = global_thread(cta) as usize;
            cta.write(data.raw, i, 1.0); //~ barrier taken for one of the grid
            cta.sync();
            cta.read(data.raw, (i + 1) % 128); //~ barrier taken for one of the grid
        }),
        twin: Body(TWO_BLOCKS, |cta, data| {
            let own = cta.block() * cta.threads();
            cta.write(data.raw, (own + cta.thread()) as usize, 1.0);
            cta.sync();
            let next = (cta.thread() + 1) % cta.threads();
            cta.read(data.raw, (own + next) as usize);
        }),
    },
    Case {
        name: "neighbour's result without a barrier",
        expects: Race,
        broken: Body(BLOCK, |cta, data| {
            let own = cta.thread();
            cta.write(data.out, own as usize, 1.0); //~ neighbour's result without a barrier
            cta.read(data.out, (own ^ 33) as usize); //~ neighbour's result without a barrier
        }),
        twin: Body(BLOCK, |cta, data| {
            let own = cta.thread();
            cta.write(data.out, own as usize, 1.0);
            cta.sync();
            cta.read(data.out, (own ^ 33) as usize);
        }),
    },
    Case {
        name: "sum read while others add",
        expects: Race,
        broken: Body(TWO_BLOCKS, |cta, data| {
            cta.add(data.out, 0, 1.0); //~ sum read while others add
            cta.sync();
            if leads(cta) {
                cta.read(data.out, 0); //~ sum read while others add
            }
        }),
        twin: Body(TWO_BLOCKS, |cta, data| {
            cta.add(data.out, cta.block() as usize, 1.0);
            cta.sync();
            if leads(cta) {
                cta.read(data.out, cta.block() as usize);
            }
        }),
    },
    Case {
        name: "zeroed by one block, added to by all",
        expects: Race,
        broken: Body(TWO_BLOCKS, |cta, data| {
            if cta.block() == 0 {
                cta.write(data.out, cta.thread() as usize, 0.0); //~ zeroed by one block, added to by all
            }
            cta.sync();
            cta.add(data.out, cta.thread() as usize, 1.0); //~ zeroed by one block, added to by all
        }),
        twin: Body(TWO_BLOCKS, |cta, data| {
            let own = global_thread(cta) as usize;
            cta.write(data.out, own, 0.0);
            cta.sync();
            cta.add(data.out, own, 1.0);
        }),
    },
    Case {
        name: "output passed as input too",
        expects: ReadOnlyWritten,
        broken: Body(BLOCK, |cta, data| {
            let own = cta.thread() as usize;
            let old: f32 = cta.load(data.out_as_input, own, Cache::Keep); //~ output passed as input too
            cta.write(data.out, own, old + 1.0); //~ output passed as input too
        }),
        twin: Body(BLOCK, |cta, data| {
            let own = cta.thread() as usize;
            let old = cta.read(data.out, own);
            cta.write(data.out, own, old + 1.0);
        }),
    },
    Case {
        name: "read-only load of a result",
        expects: ReadOnlyWritten,
        broken: Body(TWO_BLOCKS, |cta, data| {
            cta.add(data.out, 0, 1.0); //~ read-only load of a result
            cta.load::<f32>(data.out_as_input, 0, Cache::Keep); //~ read-only load of a result
        }),
        twin: Body(TWO_BLOCKS, |cta, data| {
            cta.add(data.out, 0, 1.0);
            cta.load::<f32>(data.out_as_input, 1, Cache::Keep);
        }),
    },
];
