use std::sync::Arc;

use gpu_kernels::Word;
use gpu_kernels::cg::state;

use super::Part;
use crate::device::{Buffer, Device, EmulatorOptions, MemoryOptions};
use crate::layout::packed::{Image, SparseImage};
use crate::matrix::{Features, csr_from_parts};
use crate::ops::forms::Rows;
use crate::ops::objective::{Evaluation, Intercept, Loss, ObjectiveOut, ObjectiveSums};
use crate::ops::{Matrix, MatrixOptions, Number, Preparation, Terms};
use crate::plan::fused::{Forced, Product, Strategy, Summation};

const ROWS: usize = 640;
const COLS: usize = 50;
const PER_ROW: usize = 10;

fn emulator() -> Device {
    Device::small_emulator(EmulatorOptions::default())
}

/// Rows of ten entries; all values are equal, those of a row, or none.
fn features(kind: usize) -> Arc<Features<f32>> {
    let offsets = (0..=ROWS).map(|row| (row * PER_ROW) as u64).collect();
    let column = |row: usize, i: usize| ((row % 5) + i * 5) as u32;
    let entries = || (0..ROWS).flat_map(|row| (0..PER_ROW).map(move |i| (row, i)));
    let indices = entries().map(|(row, i)| column(row, i)).collect();
    let value = |(row, i): (usize, usize)| match kind {
        0 => 1.0,
        1 => 1.0 / (row + 1) as f32,
        _ => 1.0 / (row + i + 1) as f32,
    };
    let values = entries().map(value).collect();
    let x = csr_from_parts((ROWS, COLS), offsets, indices, values);
    Arc::new(Features::Sparse(x.expect("columns ascend")))
}

fn dense() -> Arc<Features<f32>> {
    let value = |(r, c): (usize, usize)| 1.0 / (1 + r + c) as f32;
    Arc::new(Features::Dense(ndarray::Array2::from_shape_fn(
        (ROWS, COLS),
        value,
    )))
}

fn options(device_bytes: u64) -> MatrixOptions {
    MatrixOptions {
        device_bytes: Some(device_bytes),
        ..MatrixOptions::default()
    }
}

/// Bytes that `work` sends to the device.
fn crossing(device: &Device, work: impl FnOnce()) -> u64 {
    let before = device.usage().sent_bytes;
    work();
    device.usage().sent_bytes - before
}

fn fused(x: &Matrix<f32>) -> Vec<f32> {
    let y = x.device().upload(&[0.5_f32; COLS]).expect("y");
    let mut w = x.device().zeros(COLS).expect("w");
    x.fused(&y, &Terms::default(), &mut w).expect("a product");
    w.to_vec().expect("w")
}

/// Bytes of y.
const OF_Y: u64 = 4 * COLS as u64;

#[test]
fn with_room_for_all_but_one_block_each_pass_costs_one_block() {
    for (features, bytes) in [(features(2), 8 * ROWS * PER_ROW), (dense(), 4 * ROWS * 52)] {
        let expected = fused(&Matrix::new(&emulator(), features.clone()).expect("all of X"));
        let device = emulator();
        // A little more than X, but not what solvers usually want besides.
        device.limit_memory(MemoryOptions::limited(bytes + (20 << 10)));
        let x = Matrix::new(&device, features).expect("X");
        let all = x.residency();
        assert!(all.streams && all.blocks > 10, "{all:?}");
        assert_eq!(all.resident_bytes, all.block_bytes);
        let one_more = device.room().expect("a limit") / 4 + 1;
        let large = device.zeros::<f32>(one_more).expect("X makes room");
        assert_eq!(device.usage().evictions, 1);
        let absent = all.block_bytes - x.residency().resident_bytes;
        assert!(absent <= 2 * all.block_bytes / all.blocks as u64);
        // Vectors of the products.
        drop(large);
        for _ in 0..5 {
            let mut found = Vec::new();
            let crossed = crossing(&device, || found = fused(&x));
            assert_eq!(crossed - OF_Y, absent);
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).abs() <= 1e-4 * expected.abs());
            }
        }
    }
}

#[test]
fn x_crosses_once_for_two_products_and_for_an_objective_of_two() {
    let device = emulator();
    let two = MatrixOptions {
        forced: Forced {
            strategy: Some(Strategy::SparseTwoProducts),
            ..Forced::default()
        },
        ..options(1)
    };
    let x = Matrix::with_options(&device, features(2), two).expect("X");
    let once = x.residency().block_bytes;
    let bytes = crossing(&device, || drop(fused(&x)));
    let plan = x
        .used_plan(Product::Fused)
        .expect("a plan")
        .expect("of a GPU");
    assert!(plan.then.is_some());
    assert_eq!(bytes - OF_Y, once);
    let y = device.upload(&[0.5_f32; COLS]).expect("y");
    let target = device.upload(&[1.0_f32; ROWS]).expect("b");
    let (mut sums, mut gradient) = (
        device.zeros(ObjectiveSums::LEN).expect("sums"),
        device.zeros(COLS).expect("w"),
    );
    let halves = crossing(&device, || {
        let out = ObjectiveOut::new(&mut sums, &mut gradient);
        let evaluation = Evaluation::new(Loss::Logistic, &target);
        x.objective(&evaluation, &y, out).expect("an objective");
    });
    assert_eq!(halves, once);
    let wide = crossing(&device, || {
        let y = device.zeros(9 * COLS).expect("Y");
        let mut w = device.zeros(9 * COLS).expect("W");
        x.fused_many(9, &y, &Default::default(), &mut w).expect("W");
    });
    assert_eq!(wide, once);
}

#[test]
fn what_stays_gives_way_to_vectors_and_results_do_not_change() {
    let (device, features) = (emulator(), features(2));
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        ..MatrixOptions::default()
    };
    let alone = Matrix::with_options(&emulator(), features.clone(), options);
    let expected = fused(&alone.expect("X"));
    let x_bytes = 8 * ROWS * PER_ROW;
    device.limit_memory(MemoryOptions::limited(x_bytes));
    let x = Matrix::with_options(&device, features, options).expect("X");
    assert_eq!(fused(&x), expected);
    let before = x.residency();
    assert!(before.resident_bytes > 0);
    let room = device.room().expect("a limit");
    let large = device.zeros::<f32>((before.resident_bytes as usize * 3 / 4 + room) / 4);
    let large = large.expect("X makes room");
    let after = x.residency();
    assert!(after.resident_bytes < before.resident_bytes);
    let usage = device.usage();
    let left = before.resident_bytes - after.resident_bytes;
    assert!(
        usage.evicted_bytes >= left && usage.evictions > 0,
        "{usage:?}"
    );
    assert!(usage.peak_bytes <= x_bytes, "{usage:?}");
    drop(large);
    assert_eq!(fused(&x), expected);
    drop(x);
    assert_eq!(device.usage().live_bytes, 0);
}

/// A dense X of small numbers that are not sums of powers of two.
fn dense_of<T: Number>((rows, cols): (usize, usize), as_number: fn(f64) -> T) -> Arc<Features<T>> {
    let value = |(r, c): (usize, usize)| as_number(1.0 / (1 + (r * 7 + c * 3) % 101) as f64 - 0.1);
    Arc::new(Features::Dense(ndarray::Array2::from_shape_fn(
        (rows, cols),
        value,
    )))
}

/// The bits of reproducible products over an X of which the device may have this much.
fn bits_under<T: Number>(
    features: &Arc<Features<T>>,
    as_number: fn(f64) -> T,
    limit: Option<u64>,
) -> Vec<Vec<u64>> {
    let device = emulator();
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        device_bytes: limit,
        ..MatrixOptions::default()
    };
    let x = Matrix::with_options(&device, features.clone(), options).expect("X");
    assert_eq!(x.residency().streams, limit.is_some());
    let some = |len: usize, by: usize| {
        let values = (0..len).map(|i| as_number(1.0 / (1 + i % by) as f64));
        device
            .upload(&values.collect::<Vec<_>>())
            .expect("a vector")
    };
    let (y, p, v) = (some(x.cols(), 11), some(x.rows(), 13), some(x.rows(), 17));
    let (z, shift) = (some(x.cols(), 5), some(1, 1));
    let terms = Terms {
        alpha: as_number(1.5),
        weights: Some(&v),
        shift: Some(&shift),
        addend: Some((as_number(0.5), &z)),
        ..Terms::default()
    };
    let mut all = Vec::new();
    for terms in [terms, Terms::default()] {
        let mut w = device.zeros(x.cols()).expect("w");
        x.fused(&y, &terms, &mut w).expect("a product");
        all.push(w.to_vec().expect("w"));
        let without = Terms {
            shift: None,
            ..terms
        };
        x.transposed(&p, &without, &mut w).expect("a product");
        all.push(w.to_vec().expect("w"));
    }
    let bits = |w: &Vec<T>| w.iter().map(|w| Word::to_bits(*w)).collect();
    all.iter().map(bits).collect()
}

fn same_bits_under_any_limit<T: Number>(shape: (usize, usize), as_number: fn(f64) -> T) {
    let features = dense_of(shape, as_number);
    let expected = bits_under(&features, as_number, None);
    let bytes = (shape.0 * shape.1 * size_of::<T>()) as u64;
    for limit in [1, bytes / 2] {
        let found = bits_under(&features, as_number, Some(limit));
        assert!(found == expected, "{shape:?} under {limit} bytes");
    }
}

/// Widths of every kind of order: rows of threads, tiles, lanes, blocks and rings; and rows that end anywhere.
#[test]
fn sums_in_an_order_have_the_same_bits_wherever_blocks_end() {
    for shape in [
        (1_111, 1),
        (777, 7),
        (555, 18),
        (555, 33),
        (333, 44),
        (77, 200),
        (41, 1_100),
        (41, 3_000),
    ] {
        same_bits_under_any_limit::<f32>(shape, |x| x as f32);
    }
    for shape in [(777, 3), (333, 50), (41, 2_100)] {
        same_bits_under_any_limit::<f64>(shape, |x| x);
    }
}

#[test]
fn blocks_that_nobody_will_read_again_leave_first() {
    let device = emulator();
    let x_bytes = 8 * ROWS * PER_ROW;
    device.limit_memory(MemoryOptions::limited(2 * x_bytes));
    let read_for = |evaluations: u64| {
        let options = options(x_bytes as u64 / 2);
        let to_come = Preparation::For { evaluations };
        let x = Matrix::prepared(&device, features(2), options, to_come).expect("X");
        fused(&x);
        x
    };
    // The one that was read last is the one that is done.
    let (wanted, done) = (read_for(100), read_for(1));
    let before = [&wanted, &done].map(|x| x.residency().resident_bytes);
    assert!(before.iter().all(|bytes| *bytes > 0), "{before:?}");
    let room = device.room().expect("a limit");
    let large = device.zeros::<f32>((room + before[1] as usize / 2) / 4);
    let large = large.expect("X makes room");
    assert_eq!(wanted.residency().resident_bytes, before[0]);
    assert!(done.residency().resident_bytes < before[1]);
    drop(large);
}

#[test]
fn what_crosses_often_is_page_locked_as_far_as_allowed() {
    let device = emulator();
    let often = Preparation::For {
        evaluations: 1_000_000,
    };
    let x = Matrix::prepared(&device, features(2), options(1), often).expect("X");
    let (once, expected) = (x.residency().block_bytes as usize, fused(&x));
    assert_eq!(device.usage().pinned_bytes, once);
    assert_eq!(fused(&x), expected);
    drop(x);
    assert_eq!(device.usage().pinned_bytes, 0);
    device.limit_memory(MemoryOptions {
        pinned_bytes: Some(once / 2),
        ..MemoryOptions::default()
    });
    let x = Matrix::prepared(&device, features(2), options(1), often).expect("X");
    assert_eq!(fused(&x), expected);
    let pinned = device.usage().pinned_bytes;
    assert!(pinned > 0 && pinned <= once / 2);
}

#[test]
fn too_little_memory_for_a_block_is_an_error_and_leaves_nothing() {
    let device = emulator();
    device.limit_memory(MemoryOptions::limited(1_000));
    let error = Matrix::with_options(&device, features(2), MatrixOptions::default());
    let error = error.expect_err("no room");
    assert!(error.is_out_of_memory(), "{error}");
    assert_eq!(device.usage().live_bytes, 0);
    device.limit_memory(MemoryOptions::default());
    let x = Matrix::new(&device, features(2)).expect("room");
    assert_eq!(fused(&x).len(), COLS);
}

#[test]
fn a_product_of_a_solve_that_has_ended_sends_nothing() {
    let device = emulator();
    let x = Matrix::with_options(&device, features(2), options(1)).expect("X");
    let y = device.upload(&[0.5_f32; COLS]).expect("y");
    let curvature = device.upload(&[1.0_f32; ROWS]).expect("d");
    let mut sums = device.zeros(ObjectiveSums::LEN).expect("sums");
    let mut gradient = device.zeros(COLS).expect("w");
    // Nothing is left, and nothing is more than the least: the solve has ended; with something left it has not.
    for (left, crosses) in [(0.0, false), (1.0, true)] {
        let mut state = [0.0; state::LEN];
        state[state::RR] = left;
        let state = device.upload(&state).expect("a state");
        let bytes = crossing(&device, || {
            let out = ObjectiveOut {
                solve: Some(&state),
                ..ObjectiveOut::new(&mut sums, &mut gradient)
            };
            let product = x.hessian_product(&curvature, Intercept::Absent, &y, out);
            product.expect("a product");
        });
        assert_eq!(bytes > 0, crosses);
        let found = gradient.to_vec().expect("w");
        assert_eq!(found.iter().any(|w| *w != 0.0), crosses);
    }
}

#[test]
fn what_leaves_the_device_in_the_middle_of_a_pass_is_sent_and_read_in_its_place() {
    let (device, features) = (emulator(), features(2));
    device.limit_memory(MemoryOptions::limited(8 * ROWS * PER_ROW));
    let x = Matrix::new(&device, features).expect("X");
    let Rows::Sparse(rows) = &x.forms.rows else {
        unreachable!("it is sparse");
    };
    let stream = rows.streamed().expect("placed").expect("it streams");
    let words = |evicts_at: Option<usize>| {
        let (mut all, mut large) = (Vec::new(), None);
        let walk = |number: usize, _: &SparseImage<f32>, words: &Buffer<u32>| {
            if Some(number) == evicts_at {
                let bytes = x.residency().resident_bytes as usize + device.room().unwrap_or(0);
                large = Some(device.zeros::<u8>(bytes * 3 / 4)?);
            }
            all.push((number, words.to_vec()?));
            Ok(())
        };
        stream.blocks().each(Part::All, walk).expect("a pass");
        drop(large);
        // Blocks of the feed are longer than what they hold.
        let images = stream.blocks().images();
        for ((_, words), image) in all.iter_mut().zip(images) {
            words.truncate(Image::<f32>::words(image));
        }
        all
    };
    let expected = words(None);
    assert!(expected.len() > 10 && device.usage().evictions == 0);
    for evicts_at in [0, 1, 2, 5] {
        assert!(
            words(Some(evicts_at)) == expected,
            "evicted in block {evicts_at}"
        );
        // What left does not come back by itself.
        assert!(device.usage().evictions > 0);
    }
}
