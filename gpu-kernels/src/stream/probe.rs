//! Probes: how fast a device reads and adds at random addresses.
//!
//! Thread t of T draws 4·K indices i = ⌊s·n / 2³²⌋ from a xorshift generator that starts at t, and does the same with
//! each: reads element i of n or adds 1 to it, in global memory or in its block's shared memory. What it read, and
//! after a barrier its share of what its block added, it sums to `sums[t]`, so that nothing is left out by a compiler
//! and everything can be checked.
//!
//! Mapping: one generator per thread, four independent operations in flight. Shared bytes: n elements for the probes
//! of shared memory. Determinism: additions of ones are exact below 2²⁴ (f32). Valid for n up to 2³² − 1.
//! Source of the generator: G. Marsaglia, Xorshift RNGs, Journal of Statistical Software 8 (2003).

use crate::cta::{Cache, Cta, Shared};
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::verbs::{each_of_block, global_thread, zero_shared};

/// The family of probes.
pub struct Probes<T>(core::marker::PhantomData<T>);

/// Arguments of every probe; an entry ignores what it does not name.
#[repr(C)]
pub struct ProbeArgs<'a, T> {
    /// n: elements that are addressed, at least 1.
    pub len: u32,
    /// K: each thread does 4·K operations.
    pub steps: u32,
    /// n elements, read by the gathers.
    pub source: In<'a, T>,
    /// n elements, added to by [`ProbeVariant::Scatter`].
    pub target: Out<'a, T>,
    /// One element per thread of the grid.
    pub sums: Out<'a, T>,
}

impl<T> Clone for ProbeArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for ProbeArgs<'_, T> {}

/// What a probe does with its indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProbeVariant {
    /// Reads global memory.
    Gather,
    /// Adds to global memory.
    Scatter,
    /// Reads shared memory.
    SharedGather,
    /// Adds to shared memory.
    SharedAdd,
    /// Adds to 32-bit integers in shared memory and takes what was there: fixed-point sums consist of these.
    SharedCount,
}

impl ProbeVariant {
    /// Dynamic shared memory that a block needs for `len` elements of `size` bytes.
    pub const fn shared_bytes(&self, len: u32, size: u32) -> u64 {
        match self {
            ProbeVariant::Gather | ProbeVariant::Scatter => 0,
            ProbeVariant::SharedCount => len as u64 * 4,
            ProbeVariant::SharedGather | ProbeVariant::SharedAdd => len as u64 * size as u64,
        }
    }
}

/// Operations that a thread does at once.
pub const AT_ONCE: usize = 4;

/// Indices below `len`, one after the other.
struct Indices {
    state: u32,
    len: u32,
}

impl Indices {
    #[inline(always)]
    fn of<C: Cta>(cta: &C, len: u32) -> Self {
        let state = first_state(global_thread(cta) as u32);
        Indices { state, len }
    }

    #[inline(always)]
    fn next(&mut self) -> usize {
        self.state = next_state(self.state);
        ((self.state as u64 * self.len as u64) >> 32) as usize
    }

    #[inline(always)]
    fn four(&mut self) -> [usize; AT_ONCE] {
        [self.next(), self.next(), self.next(), self.next()]
    }
}

/// The state from which thread `thread` of a grid goes on: odd, hence never zero.
#[inline(always)]
pub fn first_state(thread: u32) -> u32 {
    thread.wrapping_mul(2_654_435_761) | 1
}

/// The state after `state`.
#[inline(always)]
pub fn next_state(mut state: u32) -> u32 {
    state ^= state << 13;
    state ^= state >> 17;
    state ^ state << 5
}

fn gather<C: Cta, T: Real>(cta: &C, args: &ProbeArgs<'_, T>) {
    let mut indices = Indices::of(cta, args.len);
    let mut sum = T::ZERO;
    for _ in 0..args.steps {
        let read = indices
            .four()
            .map(|i| cta.load(args.source, i, Cache::Keep));
        sum = sum + ((read[0] + read[1]) + (read[2] + read[3]));
    }
    cta.write(args.sums, global_thread(cta) as usize, sum);
}

fn scatter<C: Cta, T: Real>(cta: &C, args: &ProbeArgs<'_, T>) {
    let mut indices = Indices::of(cta, args.len);
    for _ in 0..args.steps {
        for i in indices.four() {
            cta.add(args.target, i, T::ONE);
        }
    }
    cta.write(args.sums, global_thread(cta) as usize, T::ZERO);
}

fn shared_gather<C: Cta, T: Real>(cta: &C, args: &ProbeArgs<'_, T>) {
    let copy = Shared::<T>::at(0, args.len);
    each_of_block(cta, args.len, |i| {
        cta.shared_write(copy, i, cta.load(args.source, i, Cache::Keep));
    });
    cta.sync();
    let mut indices = Indices::of(cta, args.len);
    let mut sum = T::ZERO;
    for _ in 0..args.steps {
        let read = indices.four().map(|i| cta.shared_read(copy, i));
        sum = sum + ((read[0] + read[1]) + (read[2] + read[3]));
    }
    cta.write(args.sums, global_thread(cta) as usize, sum);
}

fn shared_add<C: Cta, T: Real>(cta: &C, args: &ProbeArgs<'_, T>) {
    let counts = Shared::<T>::at(0, args.len);
    zero_shared(cta, counts);
    cta.sync();
    let mut indices = Indices::of(cta, args.len);
    for _ in 0..args.steps {
        for i in indices.four() {
            cta.shared_add(counts, i, T::ONE);
        }
    }
    cta.sync();
    let mut sum = T::ZERO;
    each_of_block(cta, args.len, |i| sum = sum + cta.shared_read(counts, i));
    cta.write(args.sums, global_thread(cta) as usize, sum);
}

fn shared_count<C: Cta, T: Real>(cta: &C, args: &ProbeArgs<'_, T>) {
    let counts = Shared::<u32>::at(0, args.len);
    each_of_block(cta, args.len, |i| cta.shared_write(counts, i, 0));
    cta.sync();
    let mut indices = Indices::of(cta, args.len);
    let mut carries = 0;
    for _ in 0..args.steps {
        for i in indices.four() {
            // Never there: it makes the old value wanted, as a carry does.
            carries += (cta.shared_fetch_add(counts, i, 1) == u32::MAX) as u32;
        }
    }
    cta.sync();
    let mut sum = carries;
    each_of_block(cta, args.len, |i| sum += cta.shared_read(counts, i));
    cta.write(
        args.sums,
        global_thread(cta) as usize,
        T::of_f64(sum as f64),
    );
}

fn check<T: Real>(
    variant: &ProbeVariant,
    launch: &Launch,
    args: &ProbeArgs<'_, T>,
) -> Result<(), Violation> {
    Violation::at_least("length", 1, args.len as u64)?;
    let threads = launch.grid as u64 * launch.block as u64;
    Violation::at_least("length of sums", threads, args.sums.len())?;
    let len = args.len as u64;
    match variant {
        ProbeVariant::Gather | ProbeVariant::SharedGather => {
            Violation::at_least("length of source", len, args.source.len())?
        }
        ProbeVariant::Scatter => Violation::at_least("length of target", len, args.target.len())?,
        ProbeVariant::SharedAdd | ProbeVariant::SharedCount => {}
    }
    let needed = variant.shared_bytes(args.len, T::SIZE);
    Violation::at_least("shared bytes", needed, launch.shared_bytes as u64)
}

crate::kernels! {
    family Probes<f32>, "stream";
    args ProbeArgs<'a, f32>;
    variant ProbeVariant;
    check check;
    describe crate::describe::unplanned;
    "probe_gather_f32", ProbeVariant::Gather => gather;
    "probe_scatter_f32", ProbeVariant::Scatter => scatter;
    "probe_shared_gather_f32", ProbeVariant::SharedGather => shared_gather;
    "probe_shared_add_f32", ProbeVariant::SharedAdd => shared_add;
    "probe_shared_count", ProbeVariant::SharedCount => shared_count;
}

crate::kernels! {
    family Probes<f64>, "stream";
    args ProbeArgs<'a, f64>;
    variant ProbeVariant;
    check check;
    describe crate::describe::unplanned;
    "probe_scatter_f64", ProbeVariant::Scatter => scatter;
    "probe_shared_add_f64", ProbeVariant::SharedAdd => shared_add;
}
