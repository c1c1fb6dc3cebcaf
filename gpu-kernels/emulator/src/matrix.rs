//! Matrix instructions of a warp. One meeting serves all lanes: each brings its part of the factors and reads those of the
//! others, which shuffles would take dozens of meetings for.
//!
//! As in `thread`, nothing here is generic, so that it is optimised where this crate is.

use std::cell::Cell;

use gpu_kernels::cta::{Shared, WARP};
use gpu_kernels::sparse_conv::{bfloat_to_f32, half_to_f32};

use super::address::SharedTarget;
use super::collective::Collective;
use super::thread::{Line, Thread};

/// Registers of a lane: eight of A and four of B, in f64 two words each.
const REGISTERS: usize = 24;
/// The first register of B, where A has four words.
const B: usize = 4;
/// The register of the metadata, behind four of A and four of B.
const METADATA: usize = 8;
/// The first word of B in f64.
const WIDE_B: usize = 16;

/// What a lane brings to an instruction, and to the one after it: a lane that is there already must not change what others
/// have not read.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    brought: [[Cell<u32>; REGISTERS]; 2],
    /// Which of the two the next instruction takes.
    next: Cell<usize>,
}

/// The registers of all lanes of a warp.
struct Gathered<'s> {
    lanes: &'s [Fragments],
    turn: usize,
}

impl Gathered<'_> {
    #[inline(always)]
    fn of(&self, lane: u32, register: usize) -> u32 {
        self.lanes[lane as usize].brought[self.turn][register].get()
    }

    /// The number in two words from `word` on.
    #[inline(always)]
    fn wide(&self, lane: u32, word: usize) -> f64 {
        let [low, high] = [0, 1].map(|i| u64::from(self.of(lane, word + i)));
        f64::from_bits(high << 32 | low)
    }
}

/// A whole byte of a word, with its sign or without.
#[inline(always)]
fn byte(word: u32, i: u32, is_signed: bool) -> i32 {
    match (word >> (8 * i)) as u8 {
        byte if is_signed => i32::from(byte as i8),
        byte => i32::from(byte),
    }
}

/// An IEEE 754 half, or a bfloat16, of a word.
#[inline(always)]
fn half(word: u32, i: u32, is_brain: bool) -> f32 {
    match word >> (16 * i) & 0xffff {
        bits if is_brain => bfloat_to_f32(bits),
        bits => half_to_f32(bits),
    }
}

impl Thread<'_> {
    /// Meets the whole warp.
    fn gather(&self, own: &[u32], site: Line) -> Gathered<'_> {
        let first = (self.number - self.lane()) as usize;
        let all = self.block.fragments();
        let fragments = &all[self.number as usize];
        // Nobody is before the last instruction but one: all have met since.
        let turn = fragments.next.replace(1 - fragments.next.get());
        for (register, word) in fragments.brought[turn].iter().zip(own) {
            register.set(*word);
        }
        self.meet(Collective::matrix(self.lane(), site));
        Gathered {
            lanes: &all[first..first + WARP as usize],
            turn,
        }
    }

    /// See [`Cta::multiply_tf32`](gpu_kernels::Cta::multiply_tf32).
    pub(super) fn tf32_product(
        &self,
        (a, b): ([f32; 4], [f32; 2]),
        mut c: [f32; 4],
        site: Line,
    ) -> [f32; 4] {
        let mut own = [0; B + 2];
        own[..B].copy_from_slice(&a.map(f32::to_bits));
        own[B..].copy_from_slice(&b.map(f32::to_bits));
        let all = self.gather(&own, site);
        let (group, turn) = (self.lane() / 4, self.lane() % 4);
        for k in 0..8 {
            let of = |row: u32, register: usize| {
                f32::from_bits(all.of(row * 4 + k % 4, register) & 0xffff_e000)
            };
            let later = k as usize / 4;
            let (upper, lower) = (of(group, 2 * later), of(group, 2 * later + 1));
            let (even, odd) = (of(2 * turn, B + later), of(2 * turn + 1, B + later));
            c[0] = upper.mul_add(even, c[0]);
            c[1] = upper.mul_add(odd, c[1]);
            c[2] = lower.mul_add(even, c[2]);
            c[3] = lower.mul_add(odd, c[3]);
        }
        c
    }

    /// See [`Cta::multiply_halves`](gpu_kernels::Cta::multiply_halves).
    pub(super) fn halves_product(
        &self,
        (a, b): ([u32; 4], [u32; 2]),
        mut c: [f32; 4],
        site: Line,
    ) -> [f32; 4] {
        let mut own = [0; B + 2];
        own[..B].copy_from_slice(&a);
        own[B..].copy_from_slice(&b);
        let all = self.gather(&own, site);
        let (group, turn) = (self.lane() / 4, self.lane() % 4);
        for k in 0..16 {
            let (lane, later) = (k % 8 / 2, k as usize / 8);
            let of = |row: u32, register| half(all.of(row * 4 + lane, register), k % 2, false);
            let right = [0, 1].map(|odd| of(2 * turn + odd, B + later));
            for lower in 0..2 {
                let left = of(group, 2 * later + lower);
                for odd in 0..2 {
                    let sum = &mut c[2 * lower + odd];
                    *sum = left.mul_add(right[odd], *sum);
                }
            }
        }
        c
    }

    /// See [`Cta::multiply_f64`](gpu_kernels::Cta::multiply_f64).
    pub(super) fn f64_product(
        &self,
        (a, b): ([f64; 8], [f64; 4]),
        mut c: [f64; 4],
        site: Line,
    ) -> [f64; 4] {
        let mut own = [0; REGISTERS];
        for (words, number) in own.chunks_exact_mut(2).zip(a.iter().chain(&b)) {
            let bits = number.to_bits();
            words.copy_from_slice(&[bits as u32, (bits >> 32) as u32]);
        }
        let all = self.gather(&own, site);
        let (group, turn) = (self.lane() / 4, self.lane() % 4);
        for k in 0..16 {
            let (lane, register) = (k % 4, k as usize / 4);
            let of_a = |lower: usize| all.wide(group * 4 + lane, 4 * register + 2 * lower);
            let of_b = |odd: u32| all.wide((2 * turn + odd) * 4 + lane, WIDE_B + 2 * register);
            let (even, odd) = (of_b(0), of_b(1));
            for lower in 0..2 {
                let left = of_a(lower);
                c[2 * lower] = left.mul_add(even, c[2 * lower]);
                c[2 * lower + 1] = left.mul_add(odd, c[2 * lower + 1]);
            }
        }
        c
    }

    /// See [`Cta::shared_read_matrices`](gpu_kernels::Cta::shared_read_matrices).
    pub(super) fn read_matrices(&self, array: Shared<u32>, row: usize, site: Line) -> [u32; 4] {
        let all = self.gather(&[row as u32], site);
        let (line, word) = (self.lane() / 4, self.lane() % 4);
        let rows = [0, 1, 2, 3].map(|matrix| all.of(matrix * 8 + line, 0));
        rows.map(|first| {
            let target = SharedTarget::new(array, (first + word) as usize);
            self.shared_element(&target, site) as u32
        })
    }

    /// See [`Cta::multiply_sparse_bytes`](gpu_kernels::Cta::multiply_sparse_bytes).
    pub(super) fn sparse_bytes_product(
        &self,
        (own, signed): (SparseFactors, [bool; 2]),
        mut c: [i32; 4],
        site: Line,
    ) -> [i32; 4] {
        let all = self.gather(&own.registers(), site);
        let (group, turn) = (self.lane() / 4, self.lane() % 4);
        for (lower, stored) in (0..64_u32).map(|i| (i / 32, i % 32)) {
            let later = stored / 16;
            let metadata = all.of(group * 4 + lower + 2 * later, METADATA);
            let place = metadata >> (stored % 16 * 2) & 3;
            let from = all.of(group * 4 + stored % 16 / 4, (2 * later + lower) as usize);
            let left = byte(from, stored % 4, signed[0]);
            // Row of B: register, lane and byte.
            let k = stored / 2 * 4 + place;
            for right in 0..2 {
                let word = all.of((2 * turn + right) * 4 + k % 16 / 4, B + k as usize / 16);
                let sum = &mut c[(lower * 2 + right) as usize];
                *sum = sum.wrapping_add(left * byte(word, k % 4, signed[1]));
            }
        }
        c
    }

    /// See [`Cta::multiply_sparse_halves`](gpu_kernels::Cta::multiply_sparse_halves).
    pub(super) fn sparse_halves_product(
        &self,
        (own, is_brain, pair): (SparseFactors, bool, u32),
        mut c: [f32; 4],
        site: Line,
    ) -> [f32; 4] {
        let all = self.gather(&own.registers(), site);
        let (group, turn) = (self.lane() / 4, self.lane() % 4);
        for (lower, stored) in (0..32_u32).map(|i| (i / 16, i % 16)) {
            let later = stored / 8;
            let metadata = all.of(group * 4 + 2 * pair + later, METADATA);
            let place = metadata >> (lower * 16 + stored % 8 * 2) & 3;
            let from = all.of(group * 4 + stored % 8 / 2, (2 * later + lower) as usize);
            let left = half(from, stored % 2, is_brain);
            // Row of B: register, lane and half.
            let k = stored / 2 * 4 + place;
            for right in 0..2 {
                let word = all.of((2 * turn + right) * 4 + k % 8 / 2, B + k as usize / 8);
                let sum = &mut c[(lower * 2 + right) as usize];
                *sum = left.mul_add(half(word, k % 2, is_brain), *sum);
            }
        }
        c
    }
}

/// What a lane brings to a product whose left factor has two columns of each four.
pub(super) struct SparseFactors {
    pub a: [u32; 4],
    pub b: [u32; 4],
    pub metadata: u32,
}

impl SparseFactors {
    fn registers(&self) -> [u32; METADATA + 1] {
        let mut registers = [self.metadata; METADATA + 1];
        registers[..B].copy_from_slice(&self.a);
        registers[B..METADATA].copy_from_slice(&self.b);
        registers
    }
}

#[cfg(test)]
mod tests {
    use gpu_kernels::{Cta, Launch};

    use crate::{Diagnosis, Emulator, EmulatorOptions, Kernel};

    const KERNEL: Kernel = Kernel {
        family: "tests",
        entry: "matrix",
    };
    const WARP: Launch = Launch {
        grid: 1,
        block: 32,
        shared_bytes: 0,
    };

    #[test]
    fn instructions_in_a_row_do_not_mix() {
        for seed in 0..8 {
            let emulator = Emulator::new(EmulatorOptions::schedule(seed));
            let out = emulator.allocate("out", 3 * 32 * 4).expect("small");
            let run = emulator.run(KERNEL, &WARP, &|cta| {
                for turn in 0..3 {
                    // A of ones times B whose rows count up: each element is the sum of rows 0 to 7, times `scale`.
                    let (lane, scale) = (cta.thread() % 4, (turn + 1) as f32);
                    let b = [lane, lane + 4].map(|row| row as f32 * scale);
                    let c = cta.multiply_tf32([1.0; 4], b, [0.0; 4]);
                    let at = turn * 32 + cta.thread() as usize;
                    cta.write(out.output::<f32>(), at, c[turn]);
                }
            });
            run.expect("the body is right");
            let found = out.download::<f32>().expect("written");
            for (turn, found) in found.chunks(32).enumerate() {
                assert_eq!(found, [28.0 * (turn + 1) as f32; 32], "schedule {seed}");
            }
        }
    }

    #[test]
    fn products_in_f64_have_every_element_at_its_place() {
        let a = |row: u32, k: u32| f64::from(row * 16 + k) - 100.5;
        let b = |k: u32, col: u32| f64::from(k * k + 3 * col) / 8.0 - 7.0;
        let emulator = Emulator::new(EmulatorOptions::schedule(1));
        let out = emulator.allocate("out", 16 * 8 * 8).expect("small");
        let run = emulator.run(KERNEL, &WARP, &|cta| {
            let (g, t) = (cta.thread() / 4, cta.thread() % 4);
            let of_a = std::array::from_fn(|i| a(g + i as u32 % 2 * 8, t + i as u32 / 2 * 4));
            let of_b = std::array::from_fn(|i| b(t + 4 * i as u32, g));
            let c = cta.multiply_f64(of_a, of_b, [1.0; 4]);
            for (i, value) in (0..4).zip(c) {
                let at = (g + i / 2 * 8) * 8 + 2 * t + i % 2;
                cta.write(out.output::<f64>(), at as usize, value);
            }
        });
        run.expect("the body is right");
        let found = out.download::<f64>().expect("written");
        for (at, found) in (0..).zip(found) {
            let (row, col) = (at / 8, at % 8);
            let terms = (0..16).map(|k| a(row, k) * b(k, col));
            assert_eq!(found, 1.0 + terms.sum::<f64>(), "C({row}, {col})");
        }
    }

    #[test]
    fn products_of_halves_have_every_element_at_its_place() {
        let a = |row: u32, k: u32| (row * 16 + k) as f32 - 100.5;
        let b = |k: u32, col: u32| (k * k + 3 * col) as f32 / 8.0 - 7.0;
        let emulator = Emulator::new(EmulatorOptions::schedule(1));
        let out = emulator.allocate("out", 16 * 8 * 4).expect("small");
        let run = emulator.run(KERNEL, &WARP, &|cta| {
            let (g, t) = (cta.thread() / 4, cta.thread() % 4);
            let pair = |k: u32, of: &dyn Fn(u32) -> f32| cta.halves([of(k), of(k + 1)]);
            let of_a = std::array::from_fn(|r| {
                let (row, k) = (g + r as u32 % 2 * 8, r as u32 / 2 * 8 + 2 * t);
                pair(k, &|k| a(row, k))
            });
            let of_b = std::array::from_fn(|r| pair(8 * r as u32 + 2 * t, &|k| b(k, g)));
            let c = cta.multiply_halves(of_a, of_b, [1.0; 4]);
            for (i, value) in (0..4).zip(c) {
                let at = (g + i / 2 * 8) * 8 + 2 * t + i % 2;
                cta.write(out.output::<f32>(), at as usize, value);
            }
        });
        run.expect("the body is right");
        let found = out.download::<f32>().expect("written");
        for (at, found) in (0..).zip(found) {
            let (row, col) = (at / 8, at % 8);
            let terms = (0..16).map(|k| a(row, k) * b(k, col));
            assert_eq!(found, 1.0 + terms.sum::<f32>(), "C({row}, {col})");
        }
    }

    #[test]
    fn a_lane_that_does_not_come_is_missed() {
        let emulator = Emulator::new(EmulatorOptions::schedule(3));
        let run = emulator.run(KERNEL, &WARP, &|cta| {
            if cta.thread() != 5 {
                cta.multiply_tf32([1.0; 4], [1.0; 2], [0.0; 4]);
            }
        });
        let fault = run.expect_err("lane 5 has ended");
        assert_eq!(fault.kind.diagnosis(), Diagnosis::AbsentLane);
    }
}
