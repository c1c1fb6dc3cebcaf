use gpu_kernels::Word;
use ndarray::Array2;
use proptest::prelude::*;

use super::*;
use crate::matrix::csr_from_parts;

/// All words of an image, written in ranges of `step`.
fn words<T: Element>(image: &impl Image<T>, features: &Features<T>, step: usize) -> Vec<u32> {
    let mut all = vec![0xdead_beef; image.words()];
    let len = all.len();
    for (number, part) in all.chunks_mut(step).enumerate() {
        let start = number * step;
        image.fill(features, start..len.min(start + step), part);
    }
    all
}

/// What kernels make of a section of values.
fn unpacked<T: Element + Word>(image: &SparseImage<T>, all: &[u32], ends: &[u32]) -> Vec<T> {
    let section = &all[image.sections().values];
    let each = |at: usize, element: usize| {
        let bytes: Vec<u8> = bytemuck::cast_slice(&section[at * element..][..element]).to_vec();
        bytemuck::pod_read_unaligned::<T>(&bytes)
    };
    let element = size_of::<T>() / 4;
    (0..image.entries)
        .map(|i| match image.values {
            ImageValues::Whole => each(i, element),
            ImageValues::Single => T::from_f64(f64::from(f32::from_bits(section[i]))),
            ImageValues::Bf16 => {
                let half = section[i / 2] >> (16 * (i % 2)) & 0xffff;
                T::from_f64(f64::from(f32::from_bits(half << 16)))
            }
            ImageValues::OfRows => {
                let row = ends.partition_point(|end| *end as usize <= i) - 1;
                each(row, element)
            }
            ImageValues::Equal(value) => value,
        })
        .collect()
}

/// The matrix of a kind of values: whole numbers are bfloat16, thirds are not.
fn matrix<T: Element>(rows: usize, cols: usize, kind: usize) -> CsrOf<T> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..rows {
        for col in (0..cols).filter(|col| (row * 7 + col * 3) % 5 == 0) {
            indices.push(col as u32);
            values.push(T::from_f64(match kind {
                0 => 2.5,
                1 => 1.0 / (row + 1) as f64,
                2 => (row + col) as f64 % 100.0,
                3 => f64::from(1.0 / (row + col + 3) as f32),
                _ => 1.0 / (row + col + 3) as f64,
            }));
        }
        offsets.push(indices.len() as u64);
    }
    let x = csr_from_parts((rows, cols), offsets, indices, values);
    x.expect("columns ascend")
}

type CsrOf<T> = crate::matrix::CsrMatrix<T>;

fn check<T: Element + Word>(shape: (usize, usize), kind: usize, step: usize, from: usize) {
    let x = matrix::<T>(shape.0, shape.1, kind);
    let rows = from.min(shape.0)..shape.0;
    let offsets = x.proper_indptr().into_owned();
    let features = Features::Sparse(x.clone());
    for rounding in [None, Some(Values::Exact)] {
        let image = SparseImage::of(&x, rows.clone(), rounding);
        let all = words(&image, &features, step);
        let sections = image.sections();
        let ends: Vec<u32> = all[sections.offsets.clone()].to_vec();
        let base = offsets[rows.start];
        let own: Vec<u32> = offsets[rows.start..]
            .iter()
            .map(|o| (o - base) as u32)
            .collect();
        assert_eq!(ends, own);
        let columns = |i: usize| match image.is_narrow {
            true => all[sections.indices.start + i / 2] >> (16 * (i % 2)) & 0xffff,
            false => all[sections.indices.start + i],
        };
        let found: Vec<u32> = (0..image.entries).map(columns).collect();
        assert_eq!(found, x.indices()[base as usize..]);
        assert_eq!(unpacked(&image, &all, &ends), x.data()[base as usize..]);
        assert_eq!(rounding.is_none(), image.is_plain());
    }
}

proptest! {
    #[test]
    fn an_image_has_every_entry(
        shape in (1_usize..90, 1_usize..40),
        kind in 0_usize..5,
        step in 1_usize..300,
        from in 0_usize..3,
    ) {
        check::<f32>(shape, kind, step, 32 * from);
        check::<f64>(shape, kind, step, 32 * from);
    }

    #[test]
    fn a_dense_image_has_every_element_and_gaps_of_zero(
        (rows, cols, gap) in (1_usize..70, 1_usize..9, 0_usize..4),
        step in 1_usize..100,
        is_whole in any::<bool>(),
        is_by_columns in any::<bool>(),
    ) {
        let value = |(r, c): (usize, usize)| if is_whole { (r + c) as f64 } else { 1.0 / (1 + r + c) as f64 };
        let x = Array2::from_shape_fn((rows, cols), value);
        let x = match is_by_columns {
            true => x.t().as_standard_layout().into_owned().reversed_axes(),
            false => x,
        };
        let ld = cols + gap;
        let first = if rows > 32 { 32 } else { 0 };
        let image = DenseImage::of(x.view(), ld, first..rows, Some(Values::Exact));
        let features = Features::Dense(x);
        let all = words(&image, &features, step);
        prop_assert!(image.is_bf16 || !is_whole);
        for at in 0..image.elements() {
            let (row, col) = (first + at / ld, at % ld);
            let expected = if col < cols { value((row, col)) } else { 0.0 };
            let found = match image.is_bf16 {
                true => f64::from(f32::from_bits((all[at / 2] >> (16 * (at % 2)) & 0xffff) << 16)),
                false => f64::from_bits(u64::from(all[2 * at]) | u64::from(all[2 * at + 1]) << 32),
            };
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn blocks_cover_all_rows_and_are_as_large_as_allowed(rows in 0_usize..3_000, each in 1_u64..50, limit in 1_u64..20_000) {
        let size = |from: usize, to: usize| each * (to - from) as u64;
        let cuts = cut_rows(rows, limit, size);
        prop_assert_eq!((cuts[0], *cuts.last().unwrap()), (0, rows));
        for (number, cut) in cuts.windows(2).enumerate() {
            prop_assert!(rows == 0 || cut[0] < cut[1]);
            prop_assert!(cut[0].is_multiple_of(32));
            prop_assert!(size(cut[0], cut[1]) <= limit || cut[1] - cut[0] <= 32);
            let is_last = number + 2 == cuts.len();
            prop_assert!(is_last || size(cut[0], cut[1] + 32) > limit);
        }
    }
}

#[test]
fn values_are_stored_in_as_few_bits_as_hold_them() {
    fn form<T: Element + Word>(kind: usize) -> ImageValues<T> {
        let x = matrix::<T>(40, 20, kind);
        SparseImage::of(&x, 0..40, Some(Values::Exact)).values
    }
    assert_eq!(form::<f32>(0), ImageValues::Equal(2.5));
    assert_eq!(form::<f32>(1), ImageValues::OfRows);
    assert_eq!(form::<f32>(2), ImageValues::Bf16);
    assert_eq!(form::<f32>(3), ImageValues::Whole);
    assert_eq!(form::<f64>(3), ImageValues::Single);
    assert_eq!(form::<f64>(4), ImageValues::Whole);
}

#[test]
fn equal_values_take_no_bytes() {
    // 8 entries a row.
    for (kind, most) in [(0, 2.6), (1, 3.1), (2, 4.6), (4, 6.6)] {
        let x = matrix::<f32>(2_000, 40, kind);
        let image = SparseImage::of(&x, 0..2_000, Some(Values::Exact));
        let each = 4.0 * image.words() as f64 / x.nnz() as f64;
        assert!(each <= most, "{each} bytes an entry of kind {kind}");
    }
}
