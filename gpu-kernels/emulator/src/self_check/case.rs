//! A broken kernel, its twin, and the buffers that they work on.

use gpu_kernels::vector::{VectorArgs, VectorVariant, Vectors};
use gpu_kernels::{Family, In, Launch, Out};

use crate::{Diagnosis, Emulator, EmulatorOptions, Fault, Kernel, Memory, Profile, Site, Thread};

/// Threads of the blocks of most cases: two warps.
pub(super) const THREADS: u32 = 64;
/// Elements of the buffers: one per thread of two blocks.
pub(super) const LEN: usize = 2 * THREADS as usize;

/// One block of two warps, with a shared word for each thread.
pub(super) const BLOCK: Launch = shape(1, THREADS);
/// Two such blocks.
pub(super) const TWO_BLOCKS: Launch = shape(2, THREADS);
/// Two clusters of two such blocks.
pub(super) const TWO_CLUSTERS: Launch = shape(4, THREADS);
/// One warp.
pub(super) const WARP: Launch = shape(1, 32);

const fn shape(grid: u32, block: u32) -> Launch {
    Launch {
        grid,
        block,
        shared_bytes: 4 * block,
    }
}

/// A kernel that is wrong, and one that is right.
pub(super) struct Case {
    /// Name; also what marks the lines that a fault may name.
    pub name: &'static str,
    /// What the emulator must say.
    pub expects: Diagnosis,
    pub broken: Attempt,
    pub twin: Attempt,
}

/// A kernel and how it is launched.
pub(super) enum Attempt {
    /// A body that belongs to no family.
    Body(Launch, fn(&Thread<'_>, &Data<'_>)),
    /// The same, launched in clusters of two blocks.
    InPairs(Launch, fn(&Thread<'_>, &Data<'_>)),
    /// The dot product of this project, whose contract holds.
    Dot(Launch),
}

/// What the bodies work on: arrays of [`LEN`] elements, if not said otherwise.
pub(super) struct Data<'a> {
    /// 0, 1, 2, …
    pub x: In<'a, f32>,
    /// x from its second element on, as a caller would pass it that forgets about alignment.
    pub shifted: In<'a, f32>,
    /// All but the last two elements of x.
    pub short: In<'a, f32>,
    /// An optional argument that is not there.
    pub absent: In<'a, f32>,
    /// A buffer that was freed.
    pub freed: In<'a, f32>,
    /// Zeros.
    pub out: Out<'a, f32>,
    /// The memory of `out` as a read-only argument.
    pub out_as_input: In<'a, f32>,
    /// Memory that nobody has written.
    pub raw: Out<'a, f32>,
}

impl Attempt {
    /// Runs on a fresh device.
    pub fn run(&self, name: &'static str, options: EmulatorOptions) -> Result<Profile, Box<Fault>> {
        let emulator = Emulator::new(options);
        let numbers: Vec<f32> = (0..LEN).map(|i| i as f32).collect();
        let fits = "a few hundred bytes fit";
        let x = emulator.upload("x", &numbers).expect(fits);
        let out = emulator.upload("out", &[0.0f32; LEN]).expect(fits);
        let raw = emulator.allocate("raw", 4 * LEN as u64).expect(fits);
        let freed = freed(&emulator);
        match self {
            Attempt::Body(shape, body) | Attempt::InPairs(shape, body) => {
                let data = Data {
                    x: x.input(),
                    shifted: part(&x, 1, LEN as u64 - 1),
                    short: part(&x, 0, LEN as u64 - 2),
                    absent: In::none(),
                    freed,
                    out: out.output(),
                    out_as_input: out.input(),
                    raw: raw.output(),
                };
                let family = "self_check";
                let kernel = Kernel {
                    family,
                    entry: name,
                };
                let cluster = match self {
                    Attempt::InPairs(..) => 2,
                    _ => 1,
                };
                let body = |thread: &Thread<'_>| body(thread, &data);
                emulator.run_in_clusters(kernel, shape, cluster, &body)
            }
            Attempt::Dot(shape) => dot(&emulator, shape, &x),
        }
    }
}

/// An argument that outlives its buffer, which safe code cannot make.
fn freed<'a>(emulator: &Emulator) -> In<'a, f32> {
    let memory = emulator.upload("freed", &[0.0f32; LEN]).expect("it fits");
    let pointer = memory.input::<f32>().pointer();
    // SAFETY: the pointer is only ever given to the emulator, which checks it.
    unsafe { In::new(pointer, LEN as u64) }
}

/// `len` elements of x from element `start` on.
fn part(x: &Memory, start: usize, len: u64) -> In<'_, f32> {
    let pointer = x.input::<f32>().pointer().wrapping_add(start);
    // SAFETY: the pointer is only ever given to the emulator, which checks it.
    unsafe { In::new(pointer, len) }
}

fn dot(emulator: &Emulator, shape: &Launch, x: &Memory) -> Result<Profile, Box<Fault>> {
    let partials = emulator.allocate("partials", 8 * 8).expect("64 bytes fit");
    let args = VectorArgs {
        len: LEN as u64,
        alpha: 0.0,
        beta: 0.0,
        a: x.input(),
        b: x.input(),
        out: Out::none(),
        partials: partials.output(),
        strides: [1; 2],
        figures: Out::none(),
        slots: [0; 3],
        counter: Out::none(),
    };
    let entry = Vectors::<f32>::entries()
        .iter()
        .find(|entry| entry.variant == VectorVariant::Dot)
        .expect("the family has a dot product");
    emulator.launch(entry, shape, &args)
}

/// The source of some cases, to find the marked lines in.
pub(super) struct Source {
    pub file: &'static str,
    pub text: &'static str,
}

impl Source {
    /// Whether `site` is a line with the mark of a case.
    pub fn marks(&self, case: &str, site: &Site) -> bool {
        let line = self.text.lines().nth(site.line as usize - 1).unwrap_or("");
        let mark = line.split_once("//~ ").map(|(_, mark)| mark.trim());
        site.file == self.file && mark == Some(case)
    }
}
