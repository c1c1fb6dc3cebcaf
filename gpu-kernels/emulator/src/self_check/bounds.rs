//! Addresses that are not there: beyond the end, misaligned, wrapped, freed.

use gpu_kernels::cta::Shared;
use gpu_kernels::verbs::load_or;
use gpu_kernels::{Cache, Cta};

use super::case::Attempt::Body;
use super::case::{BLOCK, Case, LEN, Source, TWO_BLOCKS};
use crate::Diagnosis::{Misaligned, OutOfBounds, Overflow, Panicked, UseAfterFree};

pub(super) const SOURCE: Source = Source {
    file: file!(),
    text: include_str!("bounds.rs"),
};

/// This thread's number as an index.
fn own<C: Cta>(cta: &C) -> usize {
    cta.thread() as usize
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "off by one in global memory",
        expects: OutOfBounds,
        broken: Body(TWO_BLOCKS, |cta, data| {
            let mut i = own(cta);
            while i <= LEN {
                cta.load::<f32>(data.x, i, Cache::Once); //~ off by one in global memory
                i += cta.threads() as usize;
            }
        }),
        twin: Body(TWO_BLOCKS, |cta, data| {
            let mut i = own(cta);
            while i < LEN {
                cta.load::<f32>(data.x, i, Cache::Once);
                i += cta.threads() as usize;
            }
        }),
    },
    Case {
        name: "off by one in shared memory",
        expects: OutOfBounds,
        broken: Body(BLOCK, |cta, _| {
            let words: Shared<f32> = Shared::at(0, cta.threads());
            cta.shared_write(words, own(cta) + 1, 1.0); //~ off by one in shared memory
        }),
        twin: Body(BLOCK, |cta, _| {
            let words: Shared<f32> = Shared::at(0, cta.threads());
            cta.shared_write(words, own(cta), 1.0);
        }),
    },
    Case {
        name: "array longer than the launch's shared memory",
        expects: OutOfBounds,
        broken: Body(BLOCK, |cta, _| {
            let sums: Shared<f64> = Shared::at(0, cta.threads());
            cta.shared_write(sums, own(cta), 1.0); //~ array longer than the launch's shared memory
        }),
        twin: Body(BLOCK, |cta, _| {
            let sums: Shared<f64> = Shared::at(0, cta.threads() / 2);
            if cta.thread() < cta.threads() / 2 {
                cta.shared_write(sums, own(cta), 1.0);
            }
        }),
    },
    Case {
        name: "result past the end",
        expects: OutOfBounds,
        broken: Body(TWO_BLOCKS, |cta, data| {
            let i = (cta.block() + 1) as usize * cta.threads() as usize + own(cta);
            cta.write(data.out, i, 1.0); //~ result past the end
        }),
        twin: Body(TWO_BLOCKS, |cta, data| {
            let i = cta.block() as usize * cta.threads() as usize + own(cta);
            cta.write(data.out, i, 1.0);
        }),
    },
    Case {
        name: "last pack reaches past the end",
        expects: OutOfBounds,
        broken: Body(BLOCK, |cta, data| {
            let i = 4 * own(cta);
            if i < data.short.len() as usize {
                cta.load_pack::<f32, [f32; 4]>(data.short, i, Cache::Once); //~ last pack reaches past the end
            }
        }),
        twin: Body(BLOCK, |cta, data| {
            let i = 4 * own(cta);
            if i < data.x.len() as usize {
                cta.load_pack::<f32, [f32; 4]>(data.x, i, Cache::Once);
            }
        }),
    },
    Case {
        name: "optional argument taken for granted",
        expects: OutOfBounds,
        broken: Body(BLOCK, |cta, data| {
            cta.load::<f32>(data.absent, own(cta), Cache::Once); //~ optional argument taken for granted
        }),
        twin: Body(BLOCK, |cta, data| {
            load_or(cta, data.absent, own(cta), 1.0);
        }),
    },
    Case {
        name: "misaligned pack",
        expects: Misaligned,
        broken: Body(BLOCK, |cta, data| {
            cta.load_pack::<f32, [f32; 4]>(data.x, own(cta) + 1, Cache::Once); //~ misaligned pack
        }),
        twin: Body(BLOCK, |cta, data| {
            cta.load_pack::<f32, [f32; 4]>(data.x, own(cta) / 4 * 4, Cache::Once);
        }),
    },
    Case {
        name: "misaligned buffer",
        expects: Misaligned,
        broken: Body(BLOCK, |cta, data| {
            cta.load_pack::<f32, [f32; 4]>(data.shifted, 4, Cache::Once); //~ misaligned buffer
        }),
        twin: Body(BLOCK, |cta, data| {
            cta.load_pack::<f32, [f32; 1]>(data.shifted, 4, Cache::Once);
        }),
    },
    Case {
        name: "misaligned shared array",
        expects: Misaligned,
        broken: Body(BLOCK, |cta, _| {
            if cta.thread() == 0 {
                cta.shared_write(Shared::at(4, 2), 0, 1.0f64); //~ misaligned shared array
            }
        }),
        twin: Body(BLOCK, |cta, _| {
            if cta.thread() == 0 {
                cta.shared_write(Shared::at(8, 2), 0, 1.0f64);
            }
        }),
    },
    Case {
        name: "index below zero",
        expects: Overflow,
        broken: Body(BLOCK, |cta, data| {
            cta.load::<f32>(data.x, (cta.thread() - 1) as usize, Cache::Once); //~ index below zero
        }),
        twin: Body(BLOCK, |cta, data| {
            let before = cta.thread().saturating_sub(1);
            cta.load::<f32>(data.x, before as usize, Cache::Once);
        }),
    },
    Case {
        name: "length below zero",
        expects: Overflow,
        broken: Body(BLOCK, |cta, data| {
            let len = data.absent.len() as usize;
            cta.load::<f32>(data.x, len - 1 - own(cta), Cache::Once); //~ length below zero
        }),
        twin: Body(BLOCK, |cta, data| {
            let len = data.x.len() as usize;
            cta.load::<f32>(data.x, len - 1 - own(cta), Cache::Once);
        }),
    },
    Case {
        name: "bytes of an array wrap",
        expects: Overflow,
        broken: Body(BLOCK, |cta, _| {
            let table: Shared<f64> = Shared::at(0, 1 << 29);
            let words: Shared<f32> = Shared::at(table.end(), cta.threads()); //~ bytes of an array wrap
            cta.shared_write(words, own(cta), 1.0);
        }),
        twin: Body(BLOCK, |cta, _| {
            let table: Shared<f64> = Shared::at(0, 8);
            let words: Shared<f32> = Shared::at(table.end(), cta.threads() - 16);
            if cta.thread() < words.len() {
                cta.shared_write(words, own(cta), 1.0);
            }
        }),
    },
    Case {
        name: "use after free",
        expects: UseAfterFree,
        broken: Body(BLOCK, |cta, data| {
            cta.load::<f32>(data.freed, own(cta), Cache::Once); //~ use after free
        }),
        twin: Body(BLOCK, |cta, data| {
            cta.load::<f32>(data.x, own(cta), Cache::Once);
        }),
    },
    Case {
        name: "panic in a body",
        expects: Panicked,
        broken: Body(BLOCK, |cta, data| {
            let held = [1.0, 2.0, 3.0f32];
            cta.write(data.out, own(cta), held[own(cta) % 4]); //~ panic in a body
        }),
        twin: Body(BLOCK, |cta, data| {
            let held = [1.0, 2.0, 3.0f32];
            cta.write(data.out, own(cta), held[own(cta) % 3]);
        }),
    },
];
