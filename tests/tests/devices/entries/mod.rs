//! Every compiled entry, launched by itself with several blocks and grids, whether or not a planner would
//! choose it.
//!
//! What is behind the end of an input is NaN or an index out of range, what is behind the end of an
//! output has to stay.
//!
//! A family is [`Tested`] here, or says which tests launch its entries: one that does neither does not compile.

pub mod agreement;
mod balanced;
mod cg;
mod dense;
mod design;
mod even;
mod fixed;
mod fused;
mod hot;
mod many;
mod orthant;
mod panels;
mod peers;
mod probe;
mod sparse;
mod stream;
mod tiles;
mod totals;
mod unpack;
mod vector;

use anyhow::Result;
use bytemuck::Pod;
use gpu_kernels::cg::Cg;
use gpu_kernels::conv1d::Conv1d;
use gpu_kernels::design::Designs;
use gpu_kernels::design::orthant::Orthants;
use gpu_kernels::fits::Fits;
use gpu_kernels::forms::hot::{HotMaking, HotOrder};
use gpu_kernels::forms::panels::PanelMaking;
use gpu_kernels::fused::{
    Balanced, Dense, DenseCarried, DenseMany, DenseTotals, Even, Fixed, Headed, Hot, Panels,
    Sparse, SparseMany, TilesMany, Unpack,
};
use gpu_kernels::kernel_sum::KernelSums;
use gpu_kernels::matmul::Matmul;
use gpu_kernels::objective::{
    DenseObjective, DenseSoftmax, RowObjective, Scores, SoftmaxColumns, SparseObjective,
    SparseSoftmax,
};
use gpu_kernels::peers::PeerSums;
use gpu_kernels::qr::Qr;
use gpu_kernels::reduce::Reduce;
use gpu_kernels::reduce::ladder::Ladder;
use gpu_kernels::sparse_conv::{Bf16, F16, I8, I8Wide, I16, I16Wide, SparseConv};
use gpu_kernels::stream::Stream;
use gpu_kernels::stream::probe::Probes;
use gpu_kernels::vector::Vectors;
use gpu_kernels::{Entry, Family, In, Launch, Word};
use warpfuse::device::Device;
use warpfuse::matrix::Element;
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Guarded, most_threads};
use warpfuse_tests::sample::Values;

use super::suite::{Suite, Test};

/// How the entries of a family are tested.
trait Tested: Family {
    /// Adds a test for each of them, or sees that there are others for the family.
    fn add(suite: &mut Suite);
}

/// Families whose entries are launched one by one.
macro_rules! one_by_one {
    ($( $family:ident: $module:ident::$check:ident; )*) => { $(
        impl Tested for $family<f32> {
            fn add(suite: &mut Suite) {
                add_family::<$family<f32>>(suite, $module::$check::<f32>);
            }
        }
        impl Tested for $family<f64> {
            fn add(suite: &mut Suite) {
                add_family::<$family<f64>>(suite, $module::$check::<f64>);
            }
        }
    )* };
}

one_by_one! {
    Sparse: sparse::check;
    Fixed: fixed::check;
    Hot: hot::check;
    Balanced: balanced::check;
    Even: even::check;
    Panels: panels::check;
    Dense: dense::check;
    DenseTotals: totals::check;
    DenseMany: many::check_dense;
    SparseMany: many::check_sparse;
    TilesMany: tiles::check;
    Unpack: unpack::check;
    Vectors: vector::check;
    Cg: cg::check;
    Designs: design::check;
    Orthants: orthant::check;
    Probes: probe::check;
}

impl Tested for Stream<f32> {
    fn add(suite: &mut Suite) {
        add_family::<Self>(suite, |device, entry, _| stream::check(device, entry));
    }
}

/// Sums over GPUs, of each type that is added.
macro_rules! of_peers {
    ($( $t:ty: $number:expr; )*) => { $(
        impl Tested for PeerSums<$t> {
            fn add(suite: &mut Suite) {
                add_family::<Self>(suite, |device, entry, subset| {
                    peers::check(device, entry, subset, $number)
                });
            }
        }
    )* };
}

of_peers! {
    f32: |i| i as f32 / 8.0;
    f64: |i| i as f64 / 8.0;
    u64: |i| u64::MAX - (i as u64) * (i as u64);
}

/// Families whose operation launches all of their entries: the group of its tests.
macro_rules! by_operation {
    ($( $group:literal: $( $family:ty ),*; )*) => { $( $(
        impl Tested for $family {
            fn add(suite: &mut Suite) {
                assert!(suite.has($group), "no tests `{}/…` for {}", $group, stringify!($family));
            }
        }
    )* )* };
}

by_operation! {
    "fused": Headed<f32>, Headed<f64>;
    "panel_making": PanelMaking<f32>, PanelMaking<f64>;
    "hot_making": HotOrder, HotMaking<f32>, HotMaking<f64>;
    "streamed": DenseCarried<f32>, DenseCarried<f64>;
    "objective": SparseObjective<f32>, SparseObjective<f64>, DenseObjective<f32>, DenseObjective<f64>,
        RowObjective<f32>, RowObjective<f64>;
    "softmax": SparseSoftmax<f32>, SparseSoftmax<f64>, DenseSoftmax<f32>, DenseSoftmax<f64>,
        SoftmaxColumns<f32>, SoftmaxColumns<f64>;
    "metrics": Scores<f32>, Scores<f64>;
    "kernel_sum": KernelSums<f32>, KernelSums<f64>;
    "matmul": Matmul<f32>, Matmul<f64>;
    "conv1d": Conv1d<f32>, Conv1d<f64>;
    "sparse_conv": SparseConv<I8>, SparseConv<I8Wide>, SparseConv<I16>, SparseConv<I16Wide>,
        SparseConv<F16>, SparseConv<Bf16>, SparseConv<f32>, SparseConv<f64>;
    "fits": Fits<f32>, Fits<f64>;
    "qr": Qr<f32>, Qr<f64>;
    "reduce": Reduce<f32>, Reduce<f64>, Reduce<i32>, Reduce<i64>, Ladder;
}

macro_rules! add_all {
    ($( $family:ty; )*) => {
        /// Adds the tests of every family.
        pub fn add(suite: &mut Suite) {
            $( <$family as Tested>::add(suite); )*
        }
    };
}

gpu_kernels::for_each_family!(add_all);

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
fn blocks<F: Family>(
    device: &Device,
    entry: &'static Entry<F>,
    subset: Subset,
) -> Result<Vec<u32>> {
    let most = most_threads(device, entry)?;
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

/// Launches in every block size that `entry` can have here, each with all numbers of blocks.
fn launches<F: Family>(
    device: &Device,
    entry: &'static Entry<F>,
    subset: Subset,
    shared_bytes: impl Fn(u32) -> u64,
) -> Result<Vec<Launch>> {
    let blocks = blocks(device, entry, subset)?.into_iter();
    Ok(blocks
        .flat_map(|block| in_grids(subset, block, shared_bytes(block)))
        .collect())
}

/// Launches of blocks of one size.
fn in_grids(subset: Subset, block: u32, shared_bytes: u64) -> impl Iterator<Item = Launch> {
    grids(subset).iter().map(move |&grid| Launch {
        grid,
        block,
        shared_bytes: shared_bytes as u32,
    })
}

/// What is behind the end of an output, and what is in it where a kernel must not touch it.
const CANARY: f64 = -12_345.0;

/// The same of words.
const CANARY_WORD: u32 = 0xdead_beef;

/// What kernels read, with NaN behind its end.
fn input<T: Number>(device: &Device, values: &[T]) -> Result<Guarded<T>> {
    Guarded::new(device, values, number(f64::NAN))
}

/// What kernels write, and what is there before.
fn output<T: Number>(device: &Device, before: &[T]) -> Result<Guarded<T>> {
    Guarded::new(device, before, number(CANARY))
}

/// What one kernel writes for another, NaN before.
fn scratch<T: Number>(device: &Device, len: usize) -> Result<Guarded<T>> {
    input(device, &vec![number(f64::NAN); len])
}

/// Words that kernels read, with an index behind their end that is out of range.
fn words(device: &Device, words: &[u32]) -> Result<Guarded<u32>> {
    Guarded::new(device, words, u32::MAX)
}

/// An argument that may be absent.
fn argument<T: Pod + Word>(array: &Option<Guarded<T>>) -> In<'_, T> {
    array.as_ref().map_or(In::none(), Guarded::input)
}

pub fn number<T: Number>(value: f64) -> T {
    <T as Element>::from_f64(value)
}

fn numbers<T: Number>(values: impl IntoIterator<Item = f64>) -> Vec<T> {
    values.into_iter().map(number).collect()
}
