//! Entries of conjugate gradients, one step at a time, on integers and powers of two, which are exact.

use anyhow::{Context, Result, ensure};
use gpu_kernels::cg::{CgArgs, CgVariant, Sums, state};
use gpu_kernels::{Entry, Family, In, Launch};
use warpfuse::device::Device;
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::launcher::{Guarded, launch};
use warpfuse_tests::tolerance::{Truth, compare};

use super::{CANARY, blocks, input, launches, numbers, output};

/// The sums that *measure* left: a = 8 / 4, and after such a step r·z is 8 − 2·2·2 + 2²·4 = 16 and ‖r‖² 100 − 2·2·20 + 2²·4.
const PQ: f64 = 4.0;
const RZ: f64 = 8.0;
const RR: f64 = 100.0;
const RZ_AFTER: f64 = 16.0;
const RR_AFTER: f64 = 36.0;
/// b = 16 / 8.
const TURN: f64 = 2.0;
const TOLERANCE: f64 = 0.5;

/// Where a solve stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    First,
    Active,
    Converged,
    /// As ‖r‖² is, the solve has ended, though the last step foretold more.
    Arrived,
    Indefinite,
    /// The step would leave the trust region.
    Leaving,
    /// There is no positive curvature, but a border to go to.
    Downhill,
}

const STAGES: [Stage; 7] = [
    Stage::First,
    Stage::Active,
    Stage::Converged,
    Stage::Arrived,
    Stage::Indefinite,
    Stage::Leaving,
    Stage::Downhill,
];

/// Which optional vectors are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Optional {
    Both,
    Neither,
}

impl Stage {
    fn before(self) -> [f64; state::LEN] {
        // What was foretold is not what the sums are.
        let (rr, stop) = match self {
            Stage::First => return state::START,
            Stage::Converged => (1.0, 1.0),
            Stage::Arrived => (101.0, RR),
            _ => (101.0, 1.0),
        };
        // ‖w‖² = 1, wᵀDp = 1 and ‖p‖² = 1: to the border ‖w‖ = 3 it is 2.
        [9.0, rr, stop, 3.0, 5.0, 1.0, 1.0, 1.0, -7.0, 2.5, 0.0]
    }

    fn pq(self) -> f64 {
        match self {
            Stage::Indefinite | Stage::Downhill => -PQ,
            // a = 8.
            Stage::Leaving => 1.0,
            _ => PQ,
        }
    }

    fn radius(self) -> f64 {
        match self {
            Stage::Leaving | Stage::Downhill => 3.0,
            _ => f64::INFINITY,
        }
    }

    /// How far the solution moves along p.
    fn stride(self) -> f64 {
        match self {
            Stage::Active => RZ / PQ,
            Stage::Leaving | Stage::Downhill => 2.0,
            _ => 0.0,
        }
    }

    /// Whether the step ends on the border.
    fn border(self) -> bool {
        self.radius().is_finite()
    }

    /// What *measure* left.
    fn sums(self) -> [f64; Sums::COUNT] {
        [self.pq(), RZ, RR, -2.0, 4.0, -20.0, 4.0]
    }

    /// The state afterwards, from its recurrences.
    fn after(self) -> [f64; state::LEN] {
        let mut after = self.before();
        match self {
            Stage::First => {
                let stop = TOLERANCE * TOLERANCE * RR;
                return [RZ, RR, stop, 0.0, 1.0, 0.0, 0.0, RZ, 0.0, 0.0, 0.0];
            }
            Stage::Converged => return after,
            _ => (after[state::RZ], after[state::RR]) = (RZ, RR),
        }
        if self == Stage::Arrived {
            return after;
        }
        let (a, pq) = (self.stride(), self.pq());
        after[state::CURVATURE] = pq;
        if a > 0.0 {
            (after[state::RZ], after[state::RR]) = (RZ_AFTER, RR_AFTER);
            after[state::ITERATIONS] = 4.0;
            after[state::NORM] = 1.0 + 2.0 * a + a * a;
            after[state::CROSS] = TURN * (1.0 + a);
            after[state::LENGTH] = RZ_AFTER + TURN * TURN;
            after[state::SLOPE] = -7.0 - RZ * a;
            after[state::DECREASE] = 2.5 + RZ * a - 0.5 * a * a * pq;
        }
        if self.border() {
            after[state::STOP] = f64::INFINITY;
            after[state::BORDER] = 1.0;
        }
        after
    }
}

/// Vectors as f64, and what a step makes of them.
#[derive(Clone)]
struct Vectors {
    q: Vec<f64>,
    inverse_diagonal: Vec<f64>,
    means: Vec<f64>,
    w: Vec<f64>,
    r: Vec<f64>,
    p: Vec<f64>,
}

/// What a launch leaves: the vectors, the sums over the blocks, the states.
struct Outcome {
    vectors: Vectors,
    /// [`Sums`], means·p.
    sums: [f64; Sums::COUNT],
    shift: f64,
    before: [f64; state::LEN],
    after: [f64; state::LEN],
}

/// One launch of one entry, and what it finds.
#[derive(Debug, Clone, Copy)]
struct Setting {
    shape: Launch,
    stage: Stage,
    optional: Optional,
}

/// A launch at every stage, with both choices of optional vectors.
fn settings(shape: Launch) -> impl Iterator<Item = Setting> {
    let with = move |stage| {
        [Optional::Both, Optional::Neither].map(|optional| Setting {
            shape,
            stage,
            optional,
        })
    };
    STAGES.into_iter().flat_map(with)
}

/// Runs one entry at every stage, with all blocks and grids.
pub fn check<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Cg>,
    subset: Subset,
) -> Result<()> {
    let whole = matches!(entry.variant, CgVariant::Opening | CgVariant::Iteration);
    let lengths: &[usize] = match whole {
        true => &[1, 33, 257, 1_000, 5_000],
        false => &[1, 33, 257, 1_000],
    };
    let shared = |block| entry.variant.shared_bytes(block);
    let mut shapes = launches(device, entry, subset, shared)?;
    if whole {
        // It is of one block.
        shapes.iter_mut().for_each(|shape| shape.grid = 1);
        shapes.dedup();
    }
    for &len in lengths {
        let vectors = Vectors::new(len);
        for setting in shapes.iter().copied().flat_map(settings) {
            let checked = match whole {
                true => check_whole::<T>(device, entry, &vectors, setting),
                false => run::<T>(device, entry, &vectors, setting),
            };
            checked.with_context(|| format!("{len} elements, {setting:?}"))?;
        }
    }
    Ok(())
}

fn run<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Cg>,
    vectors: &Vectors,
    setting: Setting,
) -> Result<()> {
    let Setting {
        shape,
        stage,
        optional,
    } = setting;
    let mut arrays = Arrays::<T>::new(device, vectors, stage, shape.grid)?;
    launch(device, entry, shape, arrays.args(vectors, setting))?;
    arrays.compare(&vectors.expect(entry.variant, stage, optional))
}

/// A whole opening or iteration leaves, bit by bit, what its steps leave one after the other in one block of as many threads.
fn check_whole<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Cg>,
    vectors: &Vectors,
    setting: Setting,
) -> Result<()> {
    let vectors = &vectors.with_curvature(setting.stage.pq());
    let steps = steps::<T>(entry.variant);
    let mut block = setting.shape.block;
    for step in &steps {
        let largest = blocks(device, *step, Subset::Full)?.into_iter().max();
        block = block.min(largest.unwrap_or(u32::MAX));
    }
    let shape = Launch {
        block,
        ..setting.shape
    };
    let setting = Setting { shape, ..setting };
    let whole = bits_after::<T>(device, &[entry], vectors, setting)?;
    let apart = bits_after::<T>(device, &steps, vectors, setting)?;
    ensure!(apart == whole, "the steps and the whole differ");
    Ok(())
}

/// The entries that make up an opening or an iteration, in their order.
fn steps<T: Number>(whole: CgVariant) -> Vec<&'static Entry<T::Cg>> {
    let steps: &[CgVariant] = match whole {
        CgVariant::Opening => &[CgVariant::Begin, CgVariant::Move],
        _ => &[CgVariant::Measure, CgVariant::Move],
    };
    T::Cg::entries()
        .iter()
        .filter(|entry| steps.contains(&entry.variant))
        .collect()
}

/// What the entries leave when launched one after the other.
fn bits_after<T: Number>(
    device: &Device,
    entries: &[&'static Entry<T::Cg>],
    vectors: &Vectors,
    setting: Setting,
) -> Result<Vec<u64>> {
    let mut arrays = Arrays::<T>::new(device, vectors, setting.stage, setting.shape.grid)?;
    for entry in entries {
        launch(device, entry, setting.shape, arrays.args(vectors, setting))?;
    }
    arrays.bits()
}

/// What a launch reads and writes, each with a guard around it.
struct Arrays<T> {
    q: Guarded<T>,
    d: Guarded<T>,
    means: Guarded<T>,
    outputs: [Guarded<T>; 4],
    states: [Guarded<f64>; 2],
    sums: Guarded<f64>,
    shifts: Guarded<f64>,
}

impl<T: Number> Arrays<T> {
    fn new(device: &Device, vectors: &Vectors, stage: Stage, grid: u32) -> Result<Self> {
        let input = |values: &[f64]| input(device, &values_of::<T>(values));
        let output = |values: &[f64]| output(device, &values_of::<T>(values));
        let doubles = |values: &[f64]| Guarded::new(device, values, CANARY);
        let sums = stage.sums().map(|sum| parts_of(sum, grid));
        Ok(Arrays {
            q: input(&vectors.q)?,
            d: input(&vectors.inverse_diagonal)?,
            means: input(&vectors.means)?,
            outputs: [
                output(&vectors.w)?,
                output(&vectors.r)?,
                output(&vectors.p)?,
                output(&[CANARY])?,
            ],
            states: [doubles(&stage.before())?, doubles(&[CANARY; state::LEN])?],
            sums: doubles(&sums.concat())?,
            shifts: doubles(&parts_of(CANARY, grid))?,
        })
    }

    fn args(&mut self, vectors: &Vectors, setting: Setting) -> CgArgs<'_, T> {
        let given = setting.optional == Optional::Both;
        let [w, r, p, shift] = &mut self.outputs;
        let [before, after] = &mut self.states;
        let len = vectors.q.len() as u64;
        CgArgs {
            len,
            // A piece for each block, as far as there are elements.
            piece: len.div_ceil(u64::from(setting.shape.grid)),
            first: 0,
            pieces: setting.shape.grid,
            tolerance: TOLERANCE,
            radius: setting.stage.radius(),
            q: self.q.input(),
            inverse_diagonal: if given { self.d.input() } else { In::none() },
            means: if given {
                self.means.input()
            } else {
                In::none()
            },
            w: w.output(),
            r: r.output(),
            p: p.output(),
            before: before.output(),
            after: after.output(),
            partials: self.sums.output(),
            shift_partials: self.shifts.output(),
            shift: shift.output(),
        }
    }

    fn compare(&self, expected: &Outcome) -> Result<()> {
        let to = &expected.vectors;
        let names = [("w", &to.w), ("r", &to.r), ("p", &to.p)];
        for (found, (what, expected)) in self.outputs.iter().zip(names) {
            compare(&found.values()?, &Truth::exact(expected.clone())).context(what)?;
        }
        let shifts = self.shifts.values()?;
        let sums = self.sums.values()?;
        let found = sums.chunks(shifts.len()).chain([&shifts[..]]);
        let truth = expected.sums.into_iter().chain([expected.shift]);
        for (which, (found, expected)) in found.zip(truth).enumerate() {
            let found: f64 = found.iter().sum();
            compare(&[found], &Truth::exact(vec![expected]))
                .with_context(|| format!("sum {which}"))?;
        }
        let expected = [("before", expected.before), ("after", expected.after)];
        for (found, (when, expected)) in self.states.iter().zip(expected) {
            let found = found.values()?;
            compare(&found, &Truth::exact(expected.to_vec())).context(when)?;
        }
        Ok(())
    }

    fn bits(&self) -> Result<Vec<u64>> {
        let mut bits = Vec::new();
        for output in &self.outputs {
            bits.extend(output.values()?.iter().map(|x| x.to_bits()));
        }
        bits.extend(self.states[1].values()?.iter().map(|x| x.to_bits()));
        Ok(bits)
    }
}

fn values_of<T: Number>(values: &[f64]) -> Vec<T> {
    numbers(values.iter().copied())
}

/// As many integers as blocks, which add up to `sum`.
fn parts_of(sum: f64, grid: u32) -> Vec<f64> {
    let mut parts = vec![1.0; grid as usize];
    parts[grid as usize - 1] = sum - f64::from(grid - 1);
    parts
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Vectors {
    fn new(len: usize) -> Vectors {
        let random = &mut Random::new(len as u64);
        let mut integers = |limit| (0..len).map(|_| random.integer(limit)).collect::<Vec<_>>();
        // The second coordinate is held.
        let powers = integers(1)
            .iter()
            .enumerate()
            .map(|(i, exponent)| if i == 1 { 0.0 } else { exponent.exp2() })
            .collect();
        Vectors {
            q: integers(3),
            inverse_diagonal: powers,
            means: integers(3),
            w: integers(9),
            r: integers(9),
            p: integers(9),
        }
    }

    /// The same, with an element of p and of q such that p·q is this.
    fn with_curvature(&self, pq: f64) -> Vectors {
        let mut vectors = self.clone();
        vectors.p[0] = 1.0;
        vectors.q[0] = 0.0;
        vectors.q[0] = pq - dot(&vectors.p, &vectors.q);
        vectors
    }

    /// z = D⁻¹·r.
    fn preconditioned(&self, optional: Optional) -> Vec<f64> {
        let z = |(i, r): (usize, &f64)| r * self.inverse(i, optional);
        self.r.iter().enumerate().map(z).collect()
    }

    /// D⁻¹.
    fn inverse(&self, i: usize, optional: Optional) -> f64 {
        match optional {
            Optional::Both => self.inverse_diagonal[i],
            Optional::Neither => 1.0,
        }
    }

    fn expect(&self, variant: CgVariant, stage: Stage, optional: Optional) -> Outcome {
        let mut outcome = Outcome {
            vectors: self.clone(),
            sums: stage.sums(),
            shift: CANARY,
            before: stage.before(),
            after: [CANARY; state::LEN],
        };
        match variant {
            CgVariant::Begin => self.expect_start(optional, &mut outcome),
            CgVariant::Measure => outcome.sums = self.sums(optional),
            _ => self.expect_move(stage, optional, &mut outcome),
        }
        outcome
    }

    fn expect_start(&self, optional: Optional, outcome: &mut Outcome) {
        let zeros = vec![0.0; self.q.len()];
        let to = &mut outcome.vectors;
        (to.w, to.r) = (zeros.clone(), self.q.clone());
        to.p = to.preconditioned(optional).iter().map(|z| -z).collect();
        let still = Vectors {
            p: zeros.clone(),
            q: zeros,
            ..to.clone()
        };
        outcome.sums = still.sums(optional);
        if optional == Optional::Both {
            outcome.shift = dot(&to.means, &to.p);
        }
        outcome.before = state::START;
    }

    /// [`Sums`] of these vectors.
    fn sums(&self, optional: Optional) -> [f64; Sums::COUNT] {
        let inverse = |i: usize| self.inverse(i, optional);
        let sum = |of: &dyn Fn(usize) -> f64| (0..self.q.len()).map(of).sum::<f64>();
        let free = |i: usize| f64::from(u8::from(inverse(i) != 0.0));
        let (p, q, r) = (&self.p, &self.q, &self.r);
        [
            sum(&|i| p[i] * q[i]),
            sum(&|i| r[i] * inverse(i) * r[i]),
            sum(&|i| free(i) * r[i] * r[i]),
            sum(&|i| r[i] * inverse(i) * q[i]),
            sum(&|i| q[i] * inverse(i) * q[i]),
            sum(&|i| free(i) * r[i] * q[i]),
            sum(&|i| free(i) * q[i] * q[i]),
        ]
    }

    fn expect_move(&self, stage: Stage, optional: Optional, outcome: &mut Outcome) {
        outcome.after = stage.after();
        if stage == Stage::First {
            return;
        }
        let (to, a) = (&mut outcome.vectors, stage.stride());
        if a > 0.0 {
            to.w.iter_mut().zip(&self.p).for_each(|(w, p)| *w += a * p);
            to.r.iter_mut().zip(&self.q).for_each(|(r, q)| *r += a * q);
            let z = to.preconditioned(optional);
            let pairs = to.p.iter_mut().zip(z);
            pairs.for_each(|(p, z)| *p = TURN * *p - z);
        }
        if optional == Optional::Both {
            outcome.shift = dot(&to.means, &to.p);
        }
    }
}
