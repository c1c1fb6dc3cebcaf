//! Operations on vectors as users call them.

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::Element;
use warpfuse::ops::{Number, OpError, vector};
use warpfuse::reference::vector as reference;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::tolerance::{Truth, growth, unit_roundoff};

use super::suite::{self, Suite, Test};

/// Around packs, warps, blocks and the elements of a whole grid.
const LENGTHS: [usize; 16] = [
    0, 1, 2, 3, 31, 32, 33, 255, 256, 257, 1_000, 1_023, 1_025, 4_097, 100_003, 2_000_003,
];

/// Adds every operation in both element types.
pub fn add(suite: &mut Suite) {
    add_type::<f32>(suite);
    add_type::<f64>(suite);
}

fn add_type<T: Number>(suite: &mut Suite) {
    for len in LENGTHS {
        let subset = if len > 1_025 {
            Subset::Full
        } else {
            Subset::Small
        };
        let test = Test::new(format!("vector/{len}/{}", T::DTYPE))
            .within(subset)
            .under_every_schedule();
        suite.add(test, move |device| run::<T>(device, len));
    }
    let name = format!("vector/lengths_that_differ/{}", T::DTYPE);
    suite.add(Test::new(name), refuses_lengths::<T>);
}

fn run<T: Number>(device: &Device, len: usize) -> Result<()> {
    let random = &mut Random::new(len as u64);
    let mut draw = || {
        (0..len)
            .map(|_| number(random.signed()))
            .collect::<Vec<T>>()
    };
    let (a, b) = (draw(), draw());
    let (alpha, beta) = (number(1.7), number(-0.6));
    let (on_a, on_b) = (device.upload(&a)?, device.upload(&b)?);
    let mut out = device.upload(&vec![number::<T>(f64::NAN); len])?;
    vector::fill(alpha, &mut out)?;
    let filled = Truth::exact(vec![Element::to_f64(alpha); len]);
    suite::check(device, "vector fill", &out.to_vec()?, &filled).context("fill")?;

    vector::scaled_copy(beta, &on_a, &mut out)?;
    let zeros = vec![T::default(); len];
    let scaled = combination(beta, &a, beta, &zeros);
    suite::check(device, "vector scaled_copy", &out.to_vec()?, &scaled).context("scaled copy")?;

    out.copy_from(&on_b)?;
    vector::axpby(alpha, &on_a, beta, &mut out)?;
    let sums = combination(alpha, &a, beta, &b);
    suite::check(device, "vector axpby", &out.to_vec()?, &sums).context("axpby")?;

    let dot = vector::dot(&on_a, &on_b)?;
    suite::check(
        device,
        &format!("vector dot of {}", T::DTYPE),
        &[dot],
        &dot_of(&a, &b),
    )
    .context("dot product")
}

/// α·a + β·b, with two products and a sum.
fn combination<T: Number>(alpha: T, a: &[T], beta: T, b: &[T]) -> Truth {
    let magnitude = |v: &[T]| {
        v.iter()
            .map(|v| number::<T>(Element::to_f64(*v).abs()))
            .collect()
    };
    let (abs_a, abs_b): (Vec<T>, Vec<T>) = (magnitude(a), magnitude(b));
    let abs = |v: T| number::<T>(Element::to_f64(v).abs());
    let magnitudes = reference::axpby(abs(alpha), &abs_a, abs(beta), &abs_b);
    let relative = growth(3, unit_roundoff(T::DTYPE));
    Truth {
        values: reference::axpby(alpha, a, beta, b),
        bounds: magnitudes
            .iter()
            .map(|magnitude| relative * magnitude)
            .collect(),
    }
}

/// The promise is accumulation in f64, whatever the elements are.
fn dot_of<T: Number>(a: &[T], b: &[T]) -> Truth {
    let relative = growth(a.len() + 1, unit_roundoff(f64::DTYPE));
    Truth {
        values: vec![reference::dot(a, b)],
        bounds: vec![relative * reference::dot_magnitude(a, b)],
    }
}

fn refuses_lengths<T: Number>(device: &Device) -> Result<()> {
    let (three, mut four) = (device.zeros::<T>(3)?, device.zeros::<T>(4)?);
    let one = number::<T>(1.0);
    let refused = |result: Result<(), OpError>| {
        matches!(
            result,
            Err(OpError::Length {
                expected: 4,
                found: 3,
                ..
            })
        )
    };
    ensure!(
        refused(vector::scaled_copy(one, &three, &mut four)),
        "scaled copy"
    );
    ensure!(refused(vector::axpby(one, &three, one, &mut four)), "axpby");
    ensure!(refused(vector::dot(&four, &three).map(drop)), "dot");
    ensure!(
        four.to_vec()?.iter().all(|value| *value == T::default()),
        "a refused call wrote"
    );
    Ok(())
}

fn number<T: Number>(value: f64) -> T {
    <T as Element>::from_f64(value)
}
