//! Reductions as users call them, and their kernels on every grid.

mod grids;
mod ladder;
mod parts;
mod special;
mod whole;

use anyhow::{Result, ensure};
use gpu_kernels::reduce::Accumulator;
use warpfuse::ops::reduce::{Moments, Reducible};
use warpfuse::reference::rounding::UNIT_F64;
use warpfuse_tests::generate::Random;
use warpfuse_tests::tolerance::growth;

use super::suite::Suite;

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    add_type::<f32>(suite);
    add_type::<f64>(suite);
    add_type::<i32>(suite);
    add_type::<i64>(suite);
    special::add(suite);
    ladder::add(suite);
}

fn add_type<T: Number>(suite: &mut Suite) {
    whole::add::<T>(suite);
    parts::add::<T>(suite);
    grids::add::<T>(suite);
}

/// An element type with numbers to draw.
pub trait Number: Reducible<Sum: bytemuck::Pod> + Into64 {
    /// A number of either sign; integers are small enough for exact sums in f64, and zero now and then.
    fn draw(random: &mut Random) -> Self;
}

/// Conversion for references.
pub trait Into64: Copy {
    /// The value; exact for what is drawn.
    fn into_f64(self) -> f64;
}

macro_rules! number {
    ($($t:ident: $draw:expr;)*) => { $(
        impl Into64 for $t {
            fn into_f64(self) -> f64 {
                self as f64
            }
        }
        impl Number for $t {
            fn draw(random: &mut Random) -> $t {
                ($draw)(random) as $t
            }
        }
    )* };
}

number! {
    f32: Random::signed;
    f64: Random::signed;
    i32: |random: &mut Random| random.integer(1_000);
    i64: |random: &mut Random| random.integer(1_000);
}

fn draw<T: Number>(len: usize, seed: u64) -> Vec<T> {
    let random = &mut Random::new(seed);
    (0..len).map(|_| T::draw(random)).collect()
}

fn doubles<T: Number>(values: &[T]) -> Vec<f64> {
    values.iter().map(|value| value.into_f64()).collect()
}

/// The value of a sum.
fn value<S: Accumulator>(sum: S) -> f64 {
    match S::NAME {
        "f64" => f64::from_bits(sum.to_bits()),
        _ => sum.to_bits() as i64 as f64,
    }
}

/// Whether the elements are integers, whose sums have no error.
fn is_exact<T: Reducible>() -> bool {
    T::NAME.starts_with('i')
}

/// Fails unless `found` is within `bound` of `truth`; NaN fails.
fn close(what: &str, found: f64, truth: f64, bound: f64) -> Result<()> {
    let good = (found - truth).abs() <= bound;
    ensure!(good, "{what}: {found:e}, expected {truth:e} ± {bound:e}");
    Ok(())
}

/// Checks mean and deviations of `x` against two passes in f64.
///
/// With every |x − pivot| at most s: a sum of n of them is off by γ·n·s, a sum of squares by γ·n·s², and the
/// means of chunks, rounded relative to |mean|, put another γ·n·s·|mean| into the deviations.
fn check_moments(found: Moments, x: &[f64]) -> Result<()> {
    let n = x.len() as f64;
    ensure!(found.count == x.len() as u64, "count {}", found.count);
    if x.is_empty() {
        ensure!(found.mean.is_nan() && found.deviations == 0.0, "{found:?}");
        return Ok(());
    }
    let (mean, deviations) = warpfuse::reference::reduce::moments(x);
    let spread = 2.0 * x.iter().fold(0.0_f64, |most, x| most.max((x - mean).abs()));
    let relative = growth(x.len() + 16, UNIT_F64);
    close("mean", found.mean, mean, relative * (spread + mean.abs()))?;
    let bound = 4.0 * relative * n * spread * (spread + mean.abs());
    close("deviations", found.deviations, deviations, bound)
}
