//! Vector and conjugate-gradient kernels against f64 loops.

use gpu_kernels::cg::{Cg, CgArgs, CgVariant, Sums, state};
use gpu_kernels::vector::{VectorArgs, VectorVariant, Vectors};
use gpu_kernels::{Family, In, Launch, Out};

use super::super::{Emulator, Memory};
use super::{Element, Integers, download, launch, schedules, upload};

const GRID: u32 = 3;
const BLOCK: u32 = 64;

fn shape(grid: u32) -> Launch {
    Launch {
        grid,
        block: BLOCK,
        // Seven sums at once.
        shared_bytes: 7 * (BLOCK / 32 * 8),
    }
}

fn run<T: Element>(emulator: &Emulator, variant: VectorVariant, grid: u32, args: VectorArgs<'_, T>)
where
    Vectors<T>: for<'a> Family<Args<'a> = VectorArgs<'a, T>, Variant = VectorVariant>,
{
    let entries = Vectors::<T>::entries();
    let entry = entries.iter().find(|entry| entry.variant == variant);
    launch(
        emulator,
        entry.expect("the family has all variants"),
        shape(grid),
        args,
    );
}

fn check_vectors<T: Element>(len: usize)
where
    Vectors<T>: for<'a> Family<Args<'a> = VectorArgs<'a, T>, Variant = VectorVariant>,
{
    let mut random = Integers::new(len as u64);
    let (a, b) = (random.vector(len), random.vector(len));
    let zip = |each: fn(f64, f64) -> f64| -> Vec<f64> {
        a.iter().zip(&b).map(|(a, b)| each(*a, *b)).collect()
    };
    for emulator in schedules() {
        let (on_a, on_b) = (
            upload::<T>(&emulator, "a", &a),
            upload::<T>(&emulator, "b", &b),
        );
        let out = emulator
            .allocate("out", len as u64 * u64::from(T::SIZE))
            .expect("small");
        let partials = emulator
            .allocate("partials", 8 * u64::from(GRID))
            .expect("small");
        let sum = emulator.allocate("sum", u64::from(T::SIZE)).expect("small");
        let args = VectorArgs {
            len: len as u64,
            alpha: T::of_f64(2.0),
            beta: T::of_f64(-1.0),
            a: on_a.input(),
            b: on_b.input(),
            out: out.output(),
            partials: partials.output(),
            strides: [1, 1],
            figures: Out::none(),
            slots: [0; 3],
            counter: Out::none(),
        };
        run(&emulator, VectorVariant::Fill, GRID, args);
        assert_eq!(download::<T>(&out), vec![2.0; len]);
        run(&emulator, VectorVariant::Combine, GRID, args);
        assert_eq!(download::<T>(&out), zip(|a, b| 2.0 * a - b));
        run(&emulator, VectorVariant::Update, GRID, args);
        assert_eq!(download::<T>(&out), zip(|_, b| b));
        run(&emulator, VectorVariant::Dot, GRID, args);
        let (len, out) = (u64::from(GRID), sum.output());
        run(
            &emulator,
            VectorVariant::Total,
            1,
            VectorArgs { len, out, ..args },
        );
        assert_eq!(download::<T>(&sum), [zip(|a, b| a * b).iter().sum::<f64>()]);
    }
}

#[test]
fn vectors_of_awkward_lengths() {
    for len in [1, 31, 65, 1000] {
        check_vectors::<f32>(len);
        check_vectors::<f64>(len);
    }
}

/// Vectors and scalars of a conjugate-gradient iteration.
struct CgMemory {
    q: Memory,
    w: Memory,
    r: Memory,
    p: Memory,
    states: [Memory; 2],
    sums: Memory,
    shifts: Memory,
    shift: Memory,
}

impl CgMemory {
    /// Solves from w = 0: the residual is −b.
    fn new<T: Element>(emulator: &Emulator, b: &[f64]) -> CgMemory {
        let minus_b: Vec<f64> = b.iter().map(|b| -b).collect();
        let zeros = vec![0.0; b.len()];
        let vector = |name, elements| upload::<T>(emulator, name, elements);
        let scratch = |name, sums| {
            let zeros = vec![0.0; sums * GRID as usize];
            emulator.upload(name, &zeros).expect("small")
        };
        CgMemory {
            q: vector("q", &minus_b),
            w: vector("w", &zeros),
            r: vector("r", &zeros),
            p: vector("p", &zeros),
            states: [
                emulator.upload("before", &state::START).expect("small"),
                emulator.upload("after", &[0.0; state::LEN]).expect("small"),
            ],
            sums: scratch("sums", Sums::COUNT),
            shifts: scratch("shifts", 1),
            shift: vector("shift", &[0.0]),
        }
    }

    fn launch<T: Element>(&self, emulator: &Emulator, variant: CgVariant, len: usize, turn: usize)
    where
        Cg<T>: for<'a> Family<Args<'a> = CgArgs<'a, T>, Variant = CgVariant>,
    {
        let args = CgArgs {
            len: len as u64,
            piece: (len as u64).div_ceil(u64::from(GRID)),
            first: 0,
            pieces: GRID,
            tolerance: 1e-9,
            radius: f64::INFINITY,
            q: self.q.input(),
            inverse_diagonal: In::none(),
            means: self.q.input::<T>(),
            w: self.w.output(),
            r: self.r.output(),
            p: self.p.output(),
            before: self.states[turn % 2].output(),
            after: self.states[(turn + 1) % 2].output(),
            partials: self.sums.output(),
            shift_partials: self.shifts.output(),
            shift: self.shift.output(),
        };
        let entries = Cg::<T>::entries();
        let entry = entries.iter().find(|entry| entry.variant == variant);
        launch(
            emulator,
            entry.expect("the family has all variants"),
            shape(GRID),
            args,
        );
    }
}

/// A = diag(1, 2, 3, 1, 2, 3, …): three distinct eigenvalues, so three iterations solve it.
fn apply<T: Element>(memory: &CgMemory) {
    let p = memory.p.download::<T>().expect("p is written");
    let diagonal = |i: usize| T::of_f64((1 + i % 3) as f64);
    let q: Vec<T> = p
        .iter()
        .enumerate()
        .map(|(i, p)| diagonal(i) * *p)
        .collect();
    memory
        .q
        .write_bytes(0, bytemuck::cast_slice(&q))
        .expect("q is as long as p");
}

#[test]
fn three_iterations_solve_for_three_eigenvalues() {
    let b = Integers::new(9).vector(70);
    for emulator in schedules() {
        let memory = CgMemory::new::<f64>(&emulator, &b);
        memory.launch::<f64>(&emulator, CgVariant::Begin, b.len(), 0);
        memory.launch::<f64>(&emulator, CgVariant::Move, b.len(), 0);
        for turn in 1..=3 {
            apply::<f64>(&memory);
            memory.launch::<f64>(&emulator, CgVariant::Measure, b.len(), turn);
            memory.launch::<f64>(&emulator, CgVariant::Move, b.len(), turn);
        }
        let w = memory.w.download::<f64>().expect("w is written");
        for (i, (w, b)) in w.iter().zip(&b).enumerate() {
            let expected = b / (1 + i % 3) as f64;
            // Three iterations of condition number 3: a few hundred roundings of numbers up to 3.
            assert!(
                (w - expected).abs() <= 1e-12,
                "w[{i}] = {w}, expected {expected}"
            );
        }
    }
}

#[test]
fn an_argument_that_is_too_short_is_refused_by_the_contract() {
    let emulator = Emulator::new(Default::default());
    let args = VectorArgs::<f32> {
        len: 3,
        alpha: 1.0,
        beta: 0.0,
        a: In::none(),
        b: In::none(),
        out: Out::none(),
        partials: Out::none(),
        strides: [1; 2],
        figures: Out::none(),
        slots: [0; 3],
        counter: Out::none(),
    };
    let fault = emulator
        .launch(&Vectors::<f32>::entries()[0], &shape(1), &args)
        .expect_err("out has no elements");
    assert!(fault.position.is_none());
    assert!(
        fault
            .to_string()
            .contains("length of out must be at least 3, but is 0"),
        "{fault}"
    );
}
