use gpu_kernels::fused::fixed_point::column_exponent;
use gpu_kernels::fused::hot::LANES;
use proptest::prelude::*;

use super::*;
use crate::matrix::strategy::csr;
use crate::matrix::{CsrArrays, csr_from_parts};

/// Row i has i mod 97 entries: of column 3, of every other column and of one of its own.
fn matrix(rows: usize, cols: usize, value: impl Fn(usize, usize) -> f64) -> CsrMatrix<f64> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..rows {
        let mut own: Vec<u32> = (0..row % 97).map(|i| (2 * i) as u32).collect();
        own.extend([3, (row % cols) as u32]);
        own.sort_unstable();
        own.dedup();
        values.extend((0..own.len()).map(|i| value(row, indices.len() + i)));
        indices.extend(own);
        offsets.push(indices.len() as u64);
    }
    csr_from_parts((rows, cols), offsets, indices, values).expect("a matrix")
}

fn layout(x: &CsrMatrix<f64>, most: usize, values: Values) -> HotLayout<f64> {
    HotLayout::new(x, HotSize { most, least: 1 }, values).expect("small")
}

/// (row, column, bits of the value) of all entries of the slices.
fn entries(layout: &HotLayout<f64>) -> Vec<(usize, u32, u64)> {
    let (mut found, mut position, mut from) = (Vec::new(), 0, 0);
    for (end, lanes) in layout.slices.into_iter().zip(LANES) {
        for slice in from..end {
            slice_entries(layout, slice, (lanes as usize, position), &mut found);
            position += 32 / lanes as usize;
        }
        from = end;
    }
    found.sort_unstable();
    found
}

fn slice_entries(
    layout: &HotLayout<f64>,
    slice: u32,
    (lanes, position): (usize, usize),
    found: &mut Vec<(usize, u32, u64)>,
) {
    let [from, to] = [slice, slice + 1].map(|slice| layout.steps[slice as usize]);
    let row_of = |lane: usize| {
        let position = position + lane / lanes;
        let order = layout.order.as_ref();
        (
            position,
            order.map_or(position, |order| order[position] as usize),
        )
    };
    for word in 32 * (from as u32 as usize)..32 * (to as u32 as usize) {
        for which in 0..2 {
            let place = layout.places[word] >> (16 * which) & 0xffff;
            if let Some(column) = layout.columns.get(place as usize) {
                let (position, row) = row_of(word % 32);
                let value = hot_value(&layout.values, word, which, position);
                found.push((row, *column, whole(&layout.exponents, place, value)));
            } else {
                assert_eq!(place as usize, layout.columns.len() + word % 32);
            }
        }
    }
    for at in 32 * (from >> 32) as usize..32 * (to >> 32) as usize {
        if layout.ranks[at] != NONE {
            let rank = layout.ranks[at];
            let column = layout.cold_columns[rank as usize];
            let (position, row) = row_of(at % 32);
            let value = match layout.values.form().is_constant() {
                true => hot_value(&layout.values, 0, 0, position),
                false => layout.cold_values[at],
            };
            found.push((row, column, whole(&layout.cold_exponents, rank, value)));
        }
    }
}

fn hot_value(values: &HotData<f64>, word: usize, which: usize, position: usize) -> f64 {
    let single = 2 * (word - word % 32) + 32 * which + word % 32;
    match values {
        HotData::Whole(values) => values[single],
        HotData::Single(bits) => f64::from(f32::from_bits(bits[single])),
        HotData::Half(bits) => values::of_bf16((bits[word] >> (16 * which)) as u16),
        HotData::OfRows { constants, .. } => constants[position],
        HotData::Equal { constant, .. } => *constant,
    }
}

/// A stored value as it was, of the column whose exponent field is at `at`.
fn whole(exponents: &[u32], at: u32, value: f64) -> u64 {
    let field = exponents[at as usize / 2] >> (at % 2 * 16) & 0xffff;
    assert!(value.abs() <= 1.0 || !value.is_finite(), "{value}");
    value.scaled(column_exponent::<f64>(field)).to_bits()
}

fn expected(x: &CsrMatrix<f64>) -> Vec<(usize, u32, u64)> {
    x.iter()
        .map(|(value, (row, column))| (row as usize, column, value.to_bits()))
        .collect()
}

/// The value of an entry of a row.
type ValueAt = fn(usize, usize) -> f64;

/// What values are like, and how they are stored.
const KINDS: [(ValueAt, ValueForm); 7] = [
    (|_, i| i as f64 + 1e-9, ValueForm::Whole),
    (|_, i| 1.0 + (i % 9) as f64 / 1024.0, ValueForm::Single),
    (|_, i| (i % 255) as f64 - 127.0, ValueForm::Half),
    (|row, _| 1.0 / (3 + row % 7) as f64, ValueForm::OfRows),
    (|_, _| -0.3, ValueForm::Equal),
    (|_, _| 5e-324, ValueForm::Equal),
    (|_, _| f64::INFINITY, ValueForm::Half),
];

#[test]
fn no_entry_is_lost_or_changed_in_any_form() {
    for (value, form) in KINDS {
        for (rows, cols) in [(300, 400), (3, 400), (1, 4)] {
            let x = matrix(rows, cols, value);
            for most in [0, 7, 1_000] {
                let layout = layout(&x, most, Values::Exact);
                assert_eq!(entries(&layout), expected(&x), "{form:?}, {most} hot");
                if (rows, most) == (300, 1_000) {
                    assert_eq!(layout.values.form(), form);
                    assert_eq!(super::expected(Values::Exact, &CsrArrays::of(&x)), form);
                }
            }
        }
    }
}

#[test]
fn rows_that_differ_too_much_in_magnitude_keep_their_values() {
    // Columns of small rows alone would lose their bits beside those of large ones.
    let apart = |row: usize, _| if row % 97 < 50 { 1.0 / 3.0 } else { 1e9 / 3.0 };
    let x = matrix(300, 400, apart);
    let frequent = layout(&x, 3, Values::Exact);
    assert_eq!(frequent.values.form(), ValueForm::OfRows);
    let all = layout(&x, 1_000, Values::Exact);
    assert_eq!(all.values.form(), ValueForm::Whole);
    assert_eq!(entries(&all), expected(&x));
}

#[test]
fn declared_forms_round_every_value_once() {
    let x = matrix(300, 400, |row, i| ((row * 31 + i) as f64).sin());
    for (values, form, bits) in [
        (Values::F32, ValueForm::Single, 24),
        (Values::Bf16, ValueForm::Half, 8),
    ] {
        let layout = layout(&x, 200, values);
        assert_eq!(
            (
                layout.values.form(),
                super::expected(values, &CsrArrays::of(&x))
            ),
            (form, form)
        );
        for (found, expected) in entries(&layout).into_iter().zip(expected(&x)) {
            let [found_value, value] = [found.2, expected.2].map(f64::from_bits);
            let limit = value.abs() * f64::powi(2.0, -bits);
            assert!(
                (found_value - value).abs() <= limit,
                "{found_value} {value}"
            );
            assert_eq!((found.0, found.1), (expected.0, expected.1));
        }
    }
}

#[test]
fn rows_that_share_a_slice_are_about_as_long() {
    let x = matrix(970, 400, |_, i| i as f64);
    let layout = layout(&x, 300, Values::Exact);
    let all = *layout.steps.last().expect("an end");
    let places = 64 * (all as u32) + 32 * (all >> 32) as u32;
    assert!(
        f64::from(places) < 1.3 * x.nnz() as f64,
        "{places} places for {} entries",
        x.nnz()
    );
    assert_eq!(layout.columns[0], 3);
}

#[test]
fn entries_that_meet_are_of_different_banks() {
    let (rows, cols, per_row) = (1_600, 10_000, 20);
    let column = |row: usize, i: usize| (i * 500 + (row * 7919 + i * 104_729) % 500) as u32;
    let indices = (0..rows).flat_map(|row| (0..per_row).map(move |i| column(row, i)));
    let offsets = (0..=rows).map(|row| (row * per_row) as u64).collect();
    let (indices, values) = (indices.collect(), vec![1.0; rows * per_row]);
    let x = csr_from_parts((rows, cols), offsets, indices, values).expect("a matrix");
    let layout = layout(&x, cols, Values::Exact);
    let busiest = |words: &[u32], which: usize| {
        let mut banks = [0; 32];
        for word in words {
            banks[(word >> (16 * which) & 31) as usize] += 1;
        }
        banks.into_iter().max().unwrap_or(0)
    };
    let steps = layout.places.chunks(32);
    let turns: Vec<u32> = steps
        .flat_map(|words| [busiest(words, 0), busiest(words, 1)])
        .collect();
    let mean = turns.iter().sum::<u32>() as f64 / turns.len() as f64;
    assert!(mean < 2.4, "{mean} lanes wait for one bank");
}

#[test]
fn columns_without_entries_are_left_out() {
    let x = csr_from_parts(
        (2, 9),
        vec![0, 2, 3],
        vec![1, 7, 7],
        vec![1.0_f32, 2.0, 3.0],
    );
    let size = HotSize { most: 1, least: 1 };
    let layout = HotLayout::new(&x.expect("a matrix"), size, Values::Exact).expect("small");
    assert_eq!((layout.columns, layout.cold_columns), (vec![7], vec![1]));
}

#[test]
fn frequent_cold_columns_come_first() {
    let x = matrix(300, 400, |_, i| i as f64);
    let cold = layout(&x, 1, Values::Exact).cold_columns;
    let mut counts = [0_u64; 400];
    x.indices().iter().for_each(|j| counts[*j as usize] += 1);
    let digits = |j: &u32| counts[*j as usize].max(64).leading_zeros();
    assert!(cold.is_sorted_by_key(|j| (digits(j), *j)));
}

proptest! {
    #[test]
    fn whatever_the_matrix(x in csr(), most in 0..40_usize) {
        let layout = layout(&x, most, Values::Exact);
        let tiny = f64::MIN_POSITIVE;
        // Powers of two are exact, but for values that are small beside their column's largest.
        for (found, expected) in entries(&layout).into_iter().zip(expected(&x)) {
            prop_assert_eq!((found.0, found.1), (expected.0, expected.1));
            let [found, value] = [found.2, expected.2].map(f64::from_bits);
            let largest = x.data().iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            prop_assert!(found == value || (found - value).abs() <= largest * tiny, "{found} {value}");
        }
    }
}
