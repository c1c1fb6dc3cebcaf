//! Sums over a dense X in an order: the same bits on every run, grid and device, whatever the numbers.

use warpfuse::device::Device;
use warpfuse::matrix::Dtype;
use warpfuse::plan::fused::{Forced, Product};
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::sample::Values;

use super::same_bits::{Launches, VALUES, run};
use super::suite::{Suite, Test};

/// Around packs, teams, rows in flight, tiles and chunks; rows that start anywhere; a warp's, a block's and a ring's
/// columns, and more.
const MATRICES: [(usize, usize); 20] = [
    (1, 1),
    (4_100, 1),
    (3_000, 2),
    (2_100, 3),
    (257, 7),
    (1_100, 8),
    (130, 25),
    (65, 28),
    (41, 31),
    (130, 33),
    (100, 62),
    (67, 100),
    (19, 129),
    (37, 1_000),
    (14, 1_023),
    (5, 1_025),
    (9, 2_100),
    (4, 6_001),
    (3, 20_000),
    (2, 33_000),
];

/// Blocks on an SM: as many grids, where there are rows for them.
const BLOCKS: [Option<u32>; 5] = [None, Some(1), Some(2), Some(3), Some(4)];

/// An SM need not hold more than one.
const LAUNCHES: Launches = Launches {
    of: launches,
    may_not_fit: |forced| forced.blocks_per_sm.is_some_and(|blocks| blocks > 1),
};

/// Adds one test for each matrix, kind of numbers and type, and one with more chunks than blocks.
pub fn add(suite: &mut Suite) {
    for shape in MATRICES {
        for values in VALUES {
            let case = Case::new(shape, Pattern::Dense, values);
            let test =
                |dtype: Dtype| Test::new(format!("ordered/{case}/{dtype}")).within(case.subset());
            suite.add_in_both(
                test,
                move |device| run::<f32>(device, &case, &LAUNCHES),
                move |device| run::<f64>(device, &case, &LAUNCHES),
            );
        }
    }
    for shape in [(250_000, 5), (90_000, 28), (10_000, 300), (1_500, 2_500)] {
        let case = Case::new(shape, Pattern::Dense, Values::Uniform);
        let test = |dtype: Dtype| Test::new(format!("ordered/{case}/{dtype}")).of_cuda();
        suite.add_in_both(
            test,
            move |device| run::<f32>(device, &case, &LAUNCHES),
            move |device| run::<f64>(device, &case, &LAUNCHES),
        );
    }
}

fn launches(_: &Device, _: Product) -> Vec<Forced> {
    let with = |blocks_per_sm| Forced {
        blocks_per_sm,
        ..Forced::default()
    };
    BLOCKS.into_iter().map(with).collect()
}
