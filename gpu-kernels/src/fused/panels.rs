//! Sparse X in panels: sums of one product over outputs that lie side by side in shared memory.
//!
//! Formula: `out[o] += α · v[o] · ( Σᵢ X(o, i) · u[i] · in[i] − s )`. With rows as outputs that is `X·y` and its terms,
//! with columns `Xᵀ·( v ⊙ p )`; the fused pattern is one after the other. v, u and s are optional.
//!
//! Layout: outputs are cut into *panels*, each as wide as the sums that a block can keep in shared memory; the entries of
//! a panel lie in the order of their inputs. So the gather of inputs is nearly a stream (neighbouring lanes want
//! neighbouring elements, whatever the number of columns), and all that is random stays inside an SM. An entry is a
//! value and a key of 32 bits: the place of its sum in the panel above, below the distance of its input from the base of
//! its *chunk* of [`CHUNK`] entries. Chunks end with a panel and where 16 bits do not reach the next input; places that
//! are left over add to sums that nobody reads. Within a chunk entries lie in any order, four neighbours for each lane: who
//! makes the layout sees to it that lanes meet in few banks of shared memory and in few lines of inputs.
//!
//! Mapping: a block takes a *range* of *pieces* (a run of chunks of one panel), a warp a chunk at a time, the next one
//! on the way while the present one is added. Shared memory: (widest panel + 32) elements.
//! Result: in `output` when the kernel has ended. Guarantees: no two runs need give the same bits.
//!
//! Bounds, for each of the two passes of the fused pattern, f32 on an H200: 8 bytes per entry from memory (1.75 ps),
//! one addition to shared memory (2.1 ps at 470 G/s where sums are random, 1.4 as they are laid), sectors of inputs from
//! L2 (6.2 ps each, shared by as many entries of a panel as meet in 32 bytes). One pass over CSR rows needs a gather and
//! an addition in L2 for each entry instead: 16 ps. A stored transpose in CSR form needs two gathers, 12.5 ps.
//!
//! What did not help: blocks that take the chunks of their panel in turns, so that all walk the same inputs at the same time, 0 to 2 % on
//! an H200 (3 to 66 panels, 4 and 19 million rows, f32 and f64).
//!
//! Source: propagation blocking and column blocking of sparse products; the order inside a panel is ours.

use super::{Place, Product, TeamSize};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::describe::{Description, Form, Number, SharedUse, Sums, Task, Walk};
use crate::memory::{In, Out};
use crate::scalar::{Real, Words};
use crate::table::{Launch, Violation};
use crate::verbs::{lane, load_or, zero_shared};

/// Entries of a chunk: four for each lane of a warp.
pub const CHUNK: u32 = PER_LANE * WARP;
/// Entries of a lane.
const PER_LANE: u32 = 4;
/// Words that describe a piece: its first output, its outputs (with [`LEADS`], where it is its panel's first), its first
/// chunk and the chunk after its last.
pub const PIECE_WORDS: u32 = 4;
/// Marks the first piece of a panel: what is added once is added there.
pub const LEADS: u32 = 1 << 31;
/// Sums that nobody reads, behind those of the widest panel, one for each lane: what fills a chunk goes there.
pub const SPARE: u32 = WARP;
/// Bytes of shared memory that panels are made for: with what the system takes, one of the sizes that shared memory
/// comes in on compute capability 9.0 (132 KiB), and as much is left for the L1 cache.
pub const PANEL_BYTES: u32 = 128 * 1024;

/// The most outputs of a panel of elements of `size` bytes.
pub const fn widest_panel(size: u32) -> u32 {
    PANEL_BYTES / size - SPARE
}

/// The family of kernels over panels.
pub struct Panels<T>(core::marker::PhantomData<T>);

/// Arguments of every kernel over panels.
#[repr(C)]
pub struct PanelArgs<'a, T> {
    /// Length of `output`.
    pub outputs: u32,
    /// Length of `input`.
    pub inputs: u32,
    /// Sums of the widest panel.
    pub widest: u32,
    /// The key of each entry.
    pub keys: In<'a, u32>,
    /// The value of each entry; absent where all are 1.
    pub values: In<'a, T>,
    /// The base of each chunk.
    pub bases: In<'a, u32>,
    /// [`PIECE_WORDS`] for each piece.
    pub pieces: In<'a, u32>,
    /// The first piece of each range, and the number of pieces.
    pub ranges: In<'a, u32>,
    /// The output that each sum of each panel is for; without it they are for output 0, 1, 2, …
    pub order: In<'a, u32>,
    /// `in`.
    pub input: In<'a, T>,
    /// u, as long as `in`, optional.
    pub input_weights: In<'a, T>,
    /// v, as long as the output, optional.
    pub weights: In<'a, T>,
    /// s (one element), optional.
    pub shift: In<'a, T>,
    /// What is added to.
    pub output: Out<'a, T>,
    /// α.
    pub alpha: T,
}

impl<T: Copy> Clone for PanelArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for PanelArgs<'_, T> {}

/// What distinguishes entries over panels: nothing yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PanelVariant;

impl PanelVariant {
    /// Dynamic shared memory of a block when the widest panel has this many outputs.
    pub const fn shared_bytes(&self, widest: u32, size: u32) -> u64 {
        (widest as u64 + SPARE as u64) * size as u64
    }
}

/// A run of chunks of one panel.
struct Piece {
    first_output: u32,
    outputs: u32,
    first_chunk: u32,
    end: u32,
    /// Whether it is its panel's first: what is added once is added there.
    leads: bool,
}

impl Piece {
    #[inline(always)]
    fn load<C: Cta, T: Real>(cta: &C, args: &PanelArgs<'_, T>, piece: u32) -> Self {
        let word = |i: u32| {
            let at = (piece * PIECE_WORDS + i) as usize;
            cta.load(args.pieces, at, Cache::Keep)
        };
        let outputs = word(1);
        Piece {
            first_output: word(0),
            outputs: outputs & !LEADS,
            first_chunk: word(2),
            end: word(3),
            leads: outputs & LEADS != 0,
        }
    }
}

/// A lane's entries of one chunk.
struct Batch<T> {
    base: u32,
    keys: [u32; PER_LANE as usize],
    values: [T; PER_LANE as usize],
}

impl<T: Real> Batch<T> {
    #[inline(always)]
    fn none() -> Self {
        Batch {
            base: 0,
            keys: [0; PER_LANE as usize],
            values: [T::ZERO; PER_LANE as usize],
        }
    }

    #[inline(always)]
    #[expect(
        clippy::manual_memcpy,
        reason = "a copy of slices goes through local memory"
    )]
    fn load<C: Cta>(cta: &C, args: &PanelArgs<'_, T>, chunk: u32) -> Self {
        let first = chunk as usize * CHUNK as usize + (lane(cta) * PER_LANE) as usize;
        let mut values = [T::ONE; PER_LANE as usize];
        if args.values.is_some() {
            for part in 0..PER_LANE as usize / T::Pack::LANES {
                let at = part * T::Pack::LANES;
                let pack: T::Pack = cta.load_pack(args.values, first + at, Cache::Once);
                for i in 0..T::Pack::LANES {
                    values[at + i] = pack.as_ref()[i];
                }
            }
        }
        Batch {
            base: cta.load(args.bases, chunk as usize, Cache::Keep),
            keys: cta.load_pack(args.keys, first, Cache::Once),
            values,
        }
    }

    /// Adds the entries to their sums; the gathers are requested together.
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "iterators over registers put them into local memory"
    )]
    fn add<C: Cta>(&self, cta: &C, args: &PanelArgs<'_, T>, sums: Shared<T>) {
        let mut products = self.values;
        let input = |key: u32| (self.base + (key & 0xffff)) as usize;
        for k in 0..PER_LANE as usize {
            products[k] = products[k] * cta.load(args.input, input(self.keys[k]), Cache::Keep);
        }
        if args.input_weights.is_some() {
            for k in 0..PER_LANE as usize {
                let weight = cta.load(args.input_weights, input(self.keys[k]), Cache::Keep);
                products[k] = products[k] * weight;
            }
        }
        for k in 0..PER_LANE as usize {
            cta.shared_add(sums, (self.keys[k] >> 16) as usize, products[k]);
        }
    }
}

/// The body: every piece of this block's ranges.
#[inline(always)]
fn accumulate<C: Cta, T: Real>(cta: &C, args: &PanelArgs<'_, T>) {
    let shift = load_or(cta, args.shift, 0, T::ZERO);
    let ranges = args.ranges.len() as u32 - 1;
    let mut range = cta.block();
    while range < ranges {
        let mut piece: u32 = cta.load(args.ranges, range as usize, Cache::Keep);
        let end = cta.load(args.ranges, range as usize + 1, Cache::Keep);
        while piece < end {
            one_piece(cta, args, &Piece::load(cta, args, piece), shift);
            piece += 1;
        }
        range += cta.blocks();
    }
}

#[inline(always)]
fn one_piece<C: Cta, T: Real>(cta: &C, args: &PanelArgs<'_, T>, piece: &Piece, shift: T) {
    let sums = Shared::at(0, args.widest + SPARE);
    let step = cta.threads() / WARP;
    let mut chunk = piece.first_chunk + cta.thread() / WARP;
    let has_chunk = chunk < piece.end;
    // On the way while sums are set to zero.
    let mut here = Batch::<T>::none();
    if has_chunk {
        here = Batch::load(cta, args, chunk);
    }
    zero_shared(cta, sums);
    cta.sync();
    if has_chunk {
        while chunk + step < piece.end {
            chunk += step;
            let next = Batch::load(cta, args, chunk);
            here.add(cta, args, sums);
            here = next;
        }
        here.add(cta, args, sums);
    }
    cta.sync();
    flush(
        cta,
        args,
        piece,
        sums,
        if piece.leads { shift } else { T::ZERO },
    );
    cta.sync();
}

/// Sums that a thread adds to the outputs together: which outputs they are for is requested at once.
const TOGETHER: u32 = 4;

/// Adds the sums of a piece to the outputs.
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "iterators over registers put them into local memory"
)]
fn flush<C: Cta, T: Real>(
    cta: &C,
    args: &PanelArgs<'_, T>,
    piece: &Piece,
    sums: Shared<T>,
    shift: T,
) {
    let mut first = cta.thread();
    while first < piece.outputs {
        let at = |k: usize| first + k as u32 * cta.threads();
        let mut outputs = [0; TOGETHER as usize];
        for k in 0..TOGETHER as usize {
            if at(k) < piece.outputs {
                let sum = piece.first_output + at(k);
                outputs[k] = load_or(cta, args.order, sum as usize, sum) as usize;
            }
        }
        for k in 0..TOGETHER as usize {
            if at(k) < piece.outputs {
                let weight = load_or(cta, args.weights, outputs[k], T::ONE);
                let sum = cta.shared_read(sums, at(k) as usize) - shift;
                cta.add(args.output, outputs[k], args.alpha * (weight * sum));
            }
        }
        first += TOGETHER * cta.threads();
    }
}

/// The contract.
fn check<T: Real>(
    variant: &PanelVariant,
    launch: &Launch,
    args: &PanelArgs<'_, T>,
) -> Result<(), Violation> {
    let shared = variant.shared_bytes(args.widest, T::SIZE);
    let (entries, inputs, outputs) = (args.keys.len(), args.inputs as u64, args.outputs as u64);
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    Violation::at_most("widest panel", 1 << 16, args.widest as u64 + SPARE as u64)?;
    if args.values.is_some() {
        Violation::equal("length of values", entries, args.values.len())?;
    }
    Violation::equal(
        "entries of all chunks",
        args.bases.len() * CHUNK as u64,
        entries,
    )?;
    Violation::at_most("chunks", u32::MAX as u64 - WARP as u64, args.bases.len())?;
    Violation::multiple_of("length of pieces", PIECE_WORDS as u64, args.pieces.len())?;
    Violation::at_least("length of ranges", 2, args.ranges.len())?;
    Violation::at_least("length of input", inputs, args.input.len())?;
    Violation::at_least("length of output", outputs, args.output.len())?;
    super::check_optional(&args.order, "length of order", outputs)?;
    super::check_optional(
        &args.input_weights,
        "length of weights of the input",
        inputs,
    )?;
    super::check_optional(&args.weights, "length of weights", outputs)?;
    super::check_optional(&args.shift, "length of shift", 1)
}

/// What every entry does: it serves each product, the fused one in two passes.
const fn describe(_: &PanelVariant) -> Description {
    const fn task(product: Product) -> Option<Task> {
        let form = Form::Panels;
        Some(Task { product, form })
    }
    Description {
        tasks: [
            task(Product::Fused),
            task(Product::Forward),
            task(Product::Transposed),
        ],
        walk: Walk::Chunks,
        sums: Sums {
            place: Place::Shared,
            number: Number::Float,
        },
        team: TeamSize::Lanes(WARP),
        shared: SharedUse::fixed(PANEL_BYTES),
        ..Description::UNPLANNED
    }
}

macro_rules! panel_family {
    ($t:ident) => {
        crate::kernels! {
            family Panels<$t>, "fused";
            args PanelArgs<'a, $t>;
            variant PanelVariant;
            check check::<$t>;
            describe describe;
            concat!("panels_", stringify!($t)), PanelVariant => accumulate::<_, $t>;
        }
    };
}

panel_family!(f32);
panel_family!(f64);
