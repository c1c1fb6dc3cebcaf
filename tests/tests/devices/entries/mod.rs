//! Every compiled entry, launched by itself with several blocks and grids, whether or not a planner would
//! choose it.
//!
//! What is behind the end of an input is NaN or an index out of range, what is behind the end of an
//! output has to stay.

pub mod agreement;
mod balanced;
mod cg;
mod dense;
mod design;
mod fixed;
mod fused;
mod hot;
mod many;
mod orthant;
mod panels;
mod probe;
mod sparse;
mod stream;
mod tiles;
mod totals;
mod vector;

use anyhow::Result;
use gpu_kernels::stream::Stream;
use gpu_kernels::stream::probe::Probes;
use gpu_kernels::{Entry, Family};
use warpfuse::device::Device;
use warpfuse::matrix::Element;
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::Launcher;
use warpfuse_tests::sample::Values;

use super::suite::{Suite, Test};

/// Adds one test per entry.
pub fn add(suite: &mut Suite) {
    add_type::<f32>(suite);
    add_type::<f64>(suite);
    add_family::<Stream<f32>>(suite, |device, entry, _| stream::check(device, entry));
    add_family::<Probes<f32>>(suite, probe::check::<_, f32>);
    add_family::<Probes<f64>>(suite, probe::check::<_, f64>);
}

fn add_type<T: Number>(suite: &mut Suite) {
    add_family::<T::Sparse>(suite, sparse::check::<_, T>);
    add_family::<T::Fixed>(suite, fixed::check::<_, T>);
    add_family::<T::Hot>(suite, hot::check::<_, T>);
    add_family::<T::Balanced>(suite, balanced::check::<_, T>);
    add_family::<T::Panels>(suite, panels::check::<_, T>);
    add_family::<T::Dense>(suite, dense::check::<_, T>);
    add_family::<T::DenseTotals>(suite, totals::check::<_, T>);
    add_family::<T::DenseMany>(suite, many::check_dense::<_, T>);
    add_family::<T::SparseMany>(suite, many::check_sparse::<_, T>);
    add_family::<T::TilesMany>(suite, tiles::check::<_, T>);
    add_family::<T::Vectors>(suite, vector::check::<_, T>);
    add_family::<T::Cg>(suite, cg::check::<_, T>);
    add_family::<T::Designs>(suite, design::check::<_, T>);
    add_family::<T::Orthants>(suite, orthant::check::<_, T>);
}

fn add_family<F: Family>(
    suite: &mut Suite,
    check: fn(&Device, &'static Entry<F>, Subset) -> Result<()>,
) {
    for entry in F::entries() {
        let test = Test::new(format!("entry/{}", entry.name)).of_entries();
        suite.add(test, move |device| check(device, entry, Subset::of(device)));
        agreement::add(suite, entry, check);
    }
}

/// A shape, and which entries its matrix has.
type Shape = ((usize, usize), Pattern);

/// Matrices for every entry of sparse X.
const SMALL: [Shape; 4] = [
    ((1, 1), Pattern::PerRow(1)),
    ((33, 7), Pattern::PerRow(3)),
    ((257, 70), Pattern::Growing(67)),
    ((65, 129), Pattern::Empty),
];

/// The same where there is time.
const LARGE: [Shape; 2] = [
    ((1, 5_000), Pattern::OneFull),
    ((1_000, 257), Pattern::Zipf(20)),
];

/// Matrices for one entry: those for all and a family's own, and where there is time the large ones.
fn cases(subset: Subset, small: &[Shape], large: &[Shape]) -> Vec<Case> {
    let shapes = match subset {
        Subset::Full => [&SMALL, small, &LARGE, large].concat(),
        Subset::Small => [&SMALL, small].concat(),
    };
    with_values(subset, shapes)
}

/// Each shape with integers, whose sums are exact, and with other numbers; by turns in the small subset.
fn with_values(subset: Subset, shapes: Vec<Shape>) -> Vec<Case> {
    const BOTH: [Values; 2] = [Values::Integers, Values::Uniform];
    let values = |i: usize| match subset {
        Subset::Full => &BOTH[..],
        Subset::Small => &BOTH[i % 2..][..1],
    };
    let of_shape = |(i, (shape, pattern)): (usize, Shape)| {
        let each = values(i).iter();
        each.map(move |values| Case::new(shape, pattern, *values))
    };
    shapes.into_iter().enumerate().flat_map(of_shape).collect()
}

/// Block sizes that `entry` can have here: one warp, three, many, the most.
fn blocks<L: Launcher, F: Family>(
    launcher: &L,
    entry: &'static Entry<F>,
    subset: Subset,
) -> Result<Vec<u32>> {
    let most = launcher.most_threads(entry)?;
    let all: &[u32] = match subset {
        Subset::Full => &[32, 96, 256, 1024],
        Subset::Small => &[96],
    };
    Ok(all.iter().copied().filter(|block| *block <= most).collect())
}

/// Numbers of blocks: one, few, more than there is work for.
fn grids(subset: Subset) -> &'static [u32] {
    match subset {
        Subset::Full => &[1, 3, 40],
        Subset::Small => &[3],
    }
}

fn number<T: Number>(value: f64) -> T {
    <T as Element>::from_f64(value)
}

fn numbers<T: Number>(values: impl IntoIterator<Item = f64>) -> Vec<T> {
    values.into_iter().map(number).collect()
}
