//! w in slices of columns, of which members add up one while they compute the next.

use super::*;
use crate::ops::{Overlap, Preparation};

/// Rows of one to four members: even, uneven, and none.
const OF_SLICES: [&[usize]; 5] = [
    &[ROWS],
    &[256, 267],
    &[0, ROWS],
    &[1, 300, 222],
    &[100, 0, 300, 123],
];

/// Wide enough for slices of 32 columns and more, and with columns that have no entry.
const WIDE: usize = 200;

/// What each member finds over a form of its rows in that many slices, against the CPU.
fn each_sliced<T: Number, R: Send + Deref>(
    x: &Features<T>,
    (preparation, overlap, slices): (Preparation, Overlap, usize),
    ask: impl Fn(&Matrix<T>) -> Result<R, OpError> + Sync,
    judge: impl Fn(&R::Target, R, &[usize]),
) {
    let whole = Matrix::new(&Device::cpu(), x.clone()).expect("a matrix");
    let expected = ask(&whole).expect("an answer");
    let options = MatrixOptions {
        overlap,
        ..MatrixOptions::default()
    };
    for shares in OF_SLICES {
        let found = run_threads(shares.len(), |group| {
            let first: usize = shares[..group.rank()].iter().sum();
            let own = x.select_rows(first..first + shares[group.rank()]);
            let schedule = EmulatorOptions::schedule(group.rank() as u64);
            let device = Device::small_emulator(schedule).in_group(&group)?;
            let x = Matrix::prepared(&device, own, options, preparation)?;
            let count = if group.is_alone() { 1 } else { slices };
            assert_eq!(x.column_slices().len(), count);
            ask(&x)
        });
        for found in found {
            judge(&expected, found.expect("an answer"), shares);
        }
    }
}

#[test]
fn products_over_slices_are_those_of_one() {
    let (x, y) = (sparse::<f32>(WIDE), sparse::<f64>(WIDE));
    each_sliced(
        &x,
        (Preparation::Transpose, Overlap::Thirds, 3),
        products,
        near_in_any_order,
    );
    each_sliced(
        &y,
        (Preparation::Panels, Overlap::Halves, 2),
        products,
        near_in_any_order,
    );
}

#[test]
fn objectives_over_slices_are_those_of_one() {
    let (x, y) = (sparse::<f32>(WIDE), sparse::<f64>(WIDE));
    each_sliced(
        &x,
        (Preparation::Panels, Overlap::Thirds, 3),
        objective,
        near_in_f32,
    );
    each_sliced(
        &y,
        (Preparation::Transpose, Overlap::Halves, 2),
        objective,
        near_in_any_order,
    );
}

/// Columns that come last have all entries, or none.
#[test]
fn a_slice_may_have_no_entries() {
    let narrow = sparse::<f64>(60);
    let Features::Sparse(x) = &narrow else {
        unreachable!("they are sparse");
    };
    for first in [0, 64] {
        let indices = x.indices().iter().map(|column| column + first).collect();
        let offsets = x.proper_indptr().to_vec();
        let x = csr_from_parts((ROWS, 128), offsets, indices, x.data().to_vec()).expect("rows");
        let x = Features::Sparse(x);
        for preparation in [Preparation::Transpose, Preparation::Panels] {
            each_sliced(
                &x,
                (preparation, Overlap::Halves, 2),
                fused,
                near_in_any_order,
            );
        }
    }
}

#[test]
fn there_is_one_slice_unless_others_are_wanted_and_can_be() {
    let cases = [
        (Overlap::Never, Summation::Free, Preparation::Transpose),
        // Emulators have no link, of which a model could say what it takes.
        (Overlap::Planned, Summation::Free, Preparation::Transpose),
        (
            Overlap::Halves,
            Summation::Reproducible,
            Preparation::Transpose,
        ),
        (
            Overlap::Halves,
            Summation::Free,
            Preparation::HotColumns { most: None },
        ),
    ];
    for (overlap, summation, preparation) in cases {
        let found = run_threads(2, |group| {
            let own = sparse::<f32>(WIDE).select_rows(group.rank()..group.rank() + 200);
            let device = Device::small_emulator(EmulatorOptions::default()).in_group(&group)?;
            let options = MatrixOptions {
                overlap,
                ..options(summation)
            };
            let x = Matrix::prepared(&device, own, options, preparation)?;
            Ok::<_, OpError>(x.column_slices())
        });
        for found in found {
            let whole = std::iter::once(0..WIDE).collect();
            assert_eq!(found, Ok(whole), "{overlap:?}, {preparation:?}");
        }
    }
}
