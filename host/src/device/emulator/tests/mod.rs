//! The kernels of this project on the emulator, and the emulator itself.

mod dense;
mod device;
mod profile;
mod scheduling;
mod sparse;
mod tickets;
mod vectors;

use gpu_kernels::{Entry, Family, Launch, Real, Word};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{Emulator, EmulatorOptions, Memory};

/// Schedules that kernels must stand.
const SCHEDULES: u64 = 8;

/// One emulator for each schedule.
fn schedules() -> impl Iterator<Item = Emulator> {
    (0..SCHEDULES).map(|seed| Emulator::new(EmulatorOptions::schedule(seed)))
}

/// The entries that take their turn under this emulator's schedule: each problem has every entry once, the next one under the next
/// schedule, and neighbours, which are alike, under all of them. What is a fault does not depend on the schedule.
fn in_turn<F: Family>(
    emulator: &Emulator,
    problem: u64,
) -> impl Iterator<Item = &'static Entry<F>> {
    let skipped = (emulator.options().seed + problem) % SCHEDULES;
    let entries = F::entries().iter();
    entries.skip(skipped as usize).step_by(SCHEDULES as usize)
}

/// Small integers: sums of their products are exact in every order.
struct Integers(SplitMix64);

impl Integers {
    fn new(seed: u64) -> Integers {
        Integers(SplitMix64::seed_from_u64(seed))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    fn vector(&mut self, len: usize) -> Vec<f64> {
        (0..len).map(|_| self.below(7) as f64 - 3.0).collect()
    }
}

/// Elements that can be written to memory.
trait Element: Real + bytemuck::Pod {}
impl Element for f32 {}
impl Element for f64 {}

fn upload<T: Element>(emulator: &Emulator, name: &str, elements: &[f64]) -> Memory {
    let elements: Vec<T> = elements.iter().map(|&x| T::of_f64(x)).collect();
    emulator.upload(name, &elements).expect("the data is small")
}

fn download<T: Element>(memory: &Memory) -> Vec<f64> {
    let elements = memory.download::<T>().expect("the kernel wrote it all");
    elements
        .into_iter()
        .map(Word::to_bits)
        .map(T::from_bits)
        .map(T::to_f64)
        .collect()
}

/// Launches and insists that nothing is wrong.
fn launch<F: Family>(emulator: &Emulator, entry: &Entry<F>, shape: Launch, args: F::Args<'_>) {
    if let Err(fault) = emulator.launch(entry, &shape, &args) {
        panic!("schedule {}: {fault}", emulator.options().seed);
    }
}
