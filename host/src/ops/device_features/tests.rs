use ndarray::Array2;
use sprs::CsMatI;

use super::*;
use crate::device::{EmulatorOptions, MemoryOptions};
use crate::matrix::{CsrMatrix, Element, Features};
use crate::ops::Preparation;

fn device() -> Device {
    Device::small_emulator(EmulatorOptions::default())
}

fn dense<T: Number>(rows: usize, cols: usize) -> Array2<T> {
    let value = |(i, j)| ((i * 7 + j * 3) % 11) as f64 / 4.0 - 1.0;
    Array2::from_shape_fn((rows, cols), |at| <T as Element>::from_f64(value(at)))
}

fn sparse<T: Number>(rows: usize, cols: usize) -> CsrMatrix<T> {
    let x = dense::<f64>(rows, cols).mapv(|v| if v > 0.5 { v } else { 0.0 });
    let x: CsMatI<f64, u32, u64> = CsMatI::csr_from_dense(x.view(), 0.0);
    match Features::from(x).cast::<T>() {
        Ok(Features::Sparse(x)) => x,
        _ => unreachable!("made of compressed rows of small values"),
    }
}

/// Xᵀ(X·1) of both.
fn products<T: Number>(own: &Matrix<T>, over: &Matrix<T>) -> (Vec<T>, Vec<T>) {
    let of = |x: &Matrix<T>| {
        let device = x.device();
        let mut y = device.zeros(x.cols()).unwrap();
        fill(<T as Element>::from_f64(1.0), &mut y).unwrap();
        let mut w = device.zeros(x.cols()).unwrap();
        x.fused(&y, &Terms::default(), &mut w).unwrap();
        w.to_vec().unwrap()
    };
    (of(own), of(over))
}

fn assert_moments(found: &ColumnMoments, expected: &ColumnMoments) {
    let sides = [
        (&found.sum, &expected.sum),
        (&found.sum_of_squares, &expected.sum_of_squares),
    ];
    for (found, expected) in sides {
        for (a, b) in found.iter().zip(expected) {
            // Sums of fewer than 100 terms of size 1, in f64.
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
    }
}

#[test]
fn a_dense_x_from_the_host_is_added_up_where_it_lies() {
    for cols in [3, 4, 28, 33] {
        let x = Features::from(dense::<f32>(70, cols));
        let expected = ColumnMoments::of(&x);
        let placed = Matrix::new(&device(), x).unwrap();
        let found = placed.column_moments().unwrap();
        assert_moments(&found.expect("all of X is there"), &expected);
    }
    let on_host = Matrix::new(&Device::cpu(), Features::from(dense::<f32>(7, 3))).unwrap();
    assert_eq!(on_host.column_moments().unwrap(), None);
}

fn a_sparse_x_is_added_up_on_its_device<T: Number>() {
    for rows in [0, 1, 70] {
        let x = Features::Sparse(sparse::<T>(rows, 9));
        let expected = ColumnMoments::of(&x);
        let options = MatrixOptions::default();
        let placed = Matrix::new(&device(), x).unwrap();
        let found = placed.column_moments().unwrap();
        assert_moments(&found.expect("all of X is there"), &expected);
        // Rows that are still on the host cross the link, and stay there.
        let x = Features::Sparse(sparse::<T>(rows, 9));
        let waiting = Matrix::prepared(&device(), x, options, Preparation::Panels).unwrap();
        let has_rows = waiting.has_rows();
        let found = waiting.column_moments().unwrap();
        assert_moments(&found.expect("there is room"), &expected);
        assert_eq!(waiting.has_rows(), has_rows);
    }
}

#[test]
fn a_sparse_x_from_the_host_is_added_up_on_its_device() {
    a_sparse_x_is_added_up_on_its_device::<f32>();
    a_sparse_x_is_added_up_on_its_device::<f64>();
}

#[test]
fn where_there_is_no_room_the_host_adds_up() {
    let device = device();
    let x = Features::Sparse(sparse::<f32>(300, 40));
    let placed = Matrix::new(&device, x).unwrap();
    let taken = device.usage().live_bytes;
    device.limit_memory(MemoryOptions::limited(taken + 1_000));
    assert_eq!(placed.column_moments().unwrap(), None);
}

fn dense_is_read_where_it_lies<T: Number>() {
    for (cols, gap) in [(4, 0), (5, 0), (33, 0), (40, 0), (5, 3)] {
        let (device, x) = (device(), dense::<T>(70, cols));
        let pitch = cols + gap;
        // What lies between rows is not to be read.
        let mut values = vec![<T as Element>::from_f64(f64::NAN); 70 * pitch];
        for (to, from) in values.chunks_mut(pitch).zip(x.rows()) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
        let layout = RowLayout {
            rows: 70,
            cols,
            pitch,
        };
        let lent = device.upload(&values).unwrap().into();
        let before = device.usage();
        let features = DeviceFeatures::Dense(DeviceDense::new(layout, lent).unwrap());
        let copies = device.usage().allocations - before.allocations;
        let is_copied = gap > 0 || cols == 33;
        assert_eq!(
            copies,
            u64::from(is_copied),
            "{cols} columns, a gap of {gap}"
        );
        let expected = ColumnMoments::of(&Features::Dense(x.clone()));
        assert_moments(&features.column_moments().unwrap(), &expected);
        let over = Matrix::over(features, MatrixOptions::default()).unwrap();
        assert_eq!(device.usage().sent_bytes, before.sent_bytes);
        let own = Matrix::new(&device, Features::Dense(x)).unwrap();
        let (own, over) = products(&own, &over);
        assert_eq!(own, over, "{cols} columns, a gap of {gap}");
    }
}

#[test]
fn dense_rows_are_read_where_they_lie() {
    dense_is_read_where_it_lies::<f32>();
    dense_is_read_where_it_lies::<f64>();
}

fn integers(device: &Device, values: &[u64], wide: bool) -> DeviceIntegers {
    let narrow = || values.iter().map(|value| *value as i32).collect::<Vec<_>>();
    match wide {
        true => DeviceIntegers::Wide(device.upload(bytemuck::cast_slice(values)).unwrap().into()),
        false => DeviceIntegers::Narrow(device.upload(&narrow()).unwrap().into()),
    }
}

fn sparse_is_read_where_it_lies<T: Number>(wide: bool) {
    let (device, x) = (device(), sparse::<T>(90, 30));
    let offsets: Vec<u64> = x.proper_indptr().to_vec();
    let longest = offsets.windows(2).map(|pair| pair[1] - pair[0]).max();
    let indices: Vec<u64> = x.indices().iter().map(|j| u64::from(*j)).collect();
    let values: SharedBuffer<T> = device.upload(x.data()).unwrap().into();
    let (offsets, indices) = (
        integers(&device, &offsets, wide),
        integers(&device, &indices, wide),
    );
    let before = device.usage();
    let lent = DeviceCsr::new((90, 30), offsets, indices, values).unwrap();
    assert_eq!(Some(lent.longest), longest);
    let features = DeviceFeatures::Sparse(lent);
    let expected = ColumnMoments::of(&Features::Sparse(x.clone()));
    assert_moments(&features.column_moments().unwrap(), &expected);
    let over = Matrix::over(features, MatrixOptions::default()).unwrap();
    assert_eq!(device.usage().sent_bytes, before.sent_bytes);
    let own = Matrix::new(&device, Features::Sparse(x)).unwrap();
    let (own, over) = products(&own, &over);
    for (a, b) in own.into_iter().zip(over) {
        let (a, b) = (Element::to_f64(a), Element::to_f64(b));
        // Sums of at most 90·30 positive products, whatever the order: n·ε of their sum.
        let eps = match size_of::<T>() {
            4 => f64::from(f32::EPSILON),
            _ => f64::EPSILON,
        };
        assert!((a - b).abs() <= 2.0 * 2700.0 * eps * a.abs(), "{a} {b}");
    }
}

#[test]
fn sparse_rows_are_read_where_they_lie() {
    for wide in [false, true] {
        sparse_is_read_where_it_lies::<f32>(wide);
        sparse_is_read_where_it_lies::<f64>(wide);
    }
}

#[test]
fn what_is_no_matrix_is_refused_and_the_row_named() {
    let device = device();
    let place = |offsets: &[u64], indices: &[u64]| {
        let values = device.upload(&[1.0_f32; 3]).unwrap().into();
        let (offsets, indices) = (
            integers(&device, offsets, true),
            integers(&device, indices, true),
        );
        DeviceCsr::new((2, 4), offsets, indices, values)
    };
    assert!(place(&[0, 1, 3], &[3, 0, 2]).is_ok());
    let error = |offsets: &[u64], indices: &[u64]| place(offsets, indices).unwrap_err();
    let csr = |error| OpError::Csr(error);
    assert_eq!(
        error(&[0, 3], &[0, 1, 2]),
        csr(CsrError::OffsetCount { rows: 2, found: 2 })
    );
    assert_eq!(
        error(&[0, 4, 3], &[0, 1, 2]),
        csr(CsrError::OffsetOrder { row: 1 })
    );
    assert_eq!(
        error(&[0, 1, 3], &[0, 1, 4]),
        csr(CsrError::IndexRange {
            row: 1,
            index: 4,
            cols: 4
        })
    );
    assert!(matches!(
        error(&[0, 1, 3], &[1 << 40, 1, 2]),
        OpError::Csr(CsrError::IndexRange { row: 0, .. })
    ));
    assert!(matches!(
        error(&[1, 1, 3], &[0, 1, 2]),
        OpError::Csr(CsrError::Ends { first: 1, .. })
    ));
}

#[test]
fn the_cpu_is_refused() {
    let layout = RowLayout {
        rows: 1,
        cols: 2,
        pitch: 2,
    };
    let values = Device::cpu().upload(&[1.0, 2.0]).unwrap().into();
    assert!(DeviceDense::<f64>::new(layout, values).is_err());
}
