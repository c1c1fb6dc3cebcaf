//! X with its most frequent columns told apart: the layout of [`gpu_kernels::fused::hot`], made on the host.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use gpu_kernels::Word;
use gpu_kernels::cta::WARP;
use gpu_kernels::fused::fixed_point::{FixedPoint, column_exponent};
use gpu_kernels::fused::hot::{HELD, HOT, LANES, NONE, fields_per_word};
use rayon::prelude::*;

use super::{CsrMatrix, Element, csr_from_parts};

/// Which columns are hot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotSize {
    /// So many columns at most.
    pub most: usize,
    /// Entries of a hot column, at least.
    pub least: u64,
}

/// The arrays of [`HotArgs`](gpu_kernels::fused::HotArgs), and what is left to the cold columns.
#[derive(Debug, Clone, PartialEq)]
pub struct HotLayout<T> {
    /// The first step of each slice, and the number of steps.
    pub offsets: Vec<u32>,
    /// For each step 32 indices: the place of a hot column, a cold column, or nothing.
    pub indices: Vec<u32>,
    /// Their values; those of hot columns brought below 1.
    pub values: Vec<T>,
    /// The row of X at each position; none where they are the same.
    pub order: Option<Vec<u32>>,
    /// The first slices of rows with 16, 8 and 4 lanes, and the number of slices.
    pub slices: [u32; 4],
    /// Entries of the most frequent column.
    pub busiest: u64,
    /// The column of each place, the most frequent first.
    pub columns: Vec<u32>,
    /// The largest exponent field of each column, several in a word.
    pub exponents: Vec<u32>,
    /// Whether hot columns have infinities or NaN.
    pub has_non_finite: bool,
    /// The entries of cold columns, a row for each position; columns without entries are left out.
    pub cold: CsrMatrix<T>,
    /// The column of X that each column of `cold` is.
    pub cold_columns: Vec<u32>,
}

/// What a column is called in the copy: its place and [`HOT`], or its number among the cold columns.
struct Labels {
    of_columns: Vec<u32>,
    hot: Vec<u32>,
    cold: Vec<u32>,
}

impl Labels {
    fn new(frequencies: &[u64], size: HotSize) -> Self {
        let wanted = |column: &u32| frequencies[*column as usize] >= size.least.max(1);
        let mut hot: Vec<u32> = (0..frequencies.len() as u32).filter(wanted).collect();
        let rank = |column: &u32| (std::cmp::Reverse(frequencies[*column as usize]), *column);
        hot.par_sort_unstable_by_key(rank);
        hot.truncate(size.most);
        let mut of_columns = vec![0; frequencies.len()];
        for (place, column) in (0..).zip(&hot) {
            of_columns[*column as usize] = place | HOT;
        }
        let mut cold = Vec::new();
        for (column, label) in (0..).zip(&mut of_columns) {
            if *label == 0 && frequencies[column as usize] > 0 {
                *label = cold.len() as u32;
                cold.push(column);
            }
        }
        Labels {
            of_columns,
            hot,
            cold,
        }
    }
}

/// What one task copies.
#[derive(Default)]
struct Part<T> {
    /// Steps of each slice.
    steps: Vec<u32>,
    indices: Vec<u32>,
    values: Vec<T>,
    /// Cold entries of each position.
    lengths: Vec<u32>,
    cold_indices: Vec<u32>,
    cold_values: Vec<T>,
}

impl<T: Element + FixedPoint> HotLayout<T> {
    /// The layout of `x`; `None` when it has more rows, columns or entries than 31 (entries: 32) bits count.
    pub fn new(x: &CsrMatrix<T>, size: HotSize) -> Option<Self> {
        // Rows are padded to slices.
        let limit = NONE as usize - 64;
        let most_entries = gpu_kernels::fused::sparse::MAX_NONZEROS as usize;
        if x.rows() >= limit || x.cols() >= limit || x.nnz() > most_entries {
            return None;
        }
        let frequencies = frequencies(x);
        let labels = Labels::new(&frequencies, size);
        let (fields, has_non_finite) = fields(x, &labels);
        let slices = Slices::of(&x.proper_indptr());
        let copy = Copy {
            x,
            labels: &labels,
            fields: &fields,
            slices: &slices,
        };
        let Joined {
            offsets,
            indices,
            values,
            cold,
        } = join(copy.parts(), labels.cold.len());
        Some(HotLayout {
            offsets,
            indices,
            values,
            order: slices.order,
            slices: slices.ends,
            busiest: frequencies.into_iter().max().unwrap_or(0),
            columns: labels.hot,
            exponents: pack_fields::<T>(&fields),
            has_non_finite,
            cold,
            cold_columns: labels.cold,
        })
    }
}

/// What all tasks copied.
struct Joined<T> {
    offsets: Vec<u32>,
    indices: Vec<u32>,
    values: Vec<T>,
    cold: CsrMatrix<T>,
}

fn join<T: Element>(parts: Vec<Part<T>>, cold_columns: usize) -> Joined<T> {
    let total = |len: fn(&Part<T>) -> usize| parts.iter().map(len).sum::<usize>();
    let mut offsets = vec![0];
    let mut indices = Vec::with_capacity(total(|part| part.indices.len()));
    let mut values = Vec::with_capacity(indices.capacity());
    let mut cold_offsets = vec![0];
    let mut cold_indices = Vec::with_capacity(total(|part| part.cold_indices.len()));
    let mut cold_values = Vec::with_capacity(cold_indices.capacity());
    let (mut step, mut entry) = (0, 0);
    for part in parts {
        offsets.extend(part.steps.iter().map(|steps| {
            step += steps;
            step
        }));
        cold_offsets.extend(part.lengths.iter().map(|length| {
            entry += u64::from(*length);
            entry
        }));
        indices.extend(part.indices);
        values.extend(part.values);
        cold_indices.extend(part.cold_indices);
        cold_values.extend(part.cold_values);
    }
    let shape = (cold_offsets.len() - 1, cold_columns);
    let cold = csr_from_parts(shape, cold_offsets, cold_indices, cold_values);
    Joined {
        offsets,
        indices,
        values,
        cold: cold.expect("labels of cold columns ascend as the columns do"),
    }
}

/// Entries of each column: in parallel whatever n is, as nobody has counts of its own.
fn frequencies<T: Element>(x: &CsrMatrix<T>) -> Vec<u64> {
    let counts: Vec<AtomicU32> = (0..x.cols()).map(|_| AtomicU32::new(0)).collect();
    x.indices().par_chunks(CHUNK).for_each(|chunk| {
        for column in chunk {
            counts[*column as usize].fetch_add(1, Ordering::Relaxed);
        }
    });
    counts
        .into_iter()
        .map(|count| u64::from(count.into_inner()))
        .collect()
}

/// Entries that one task looks at.
const CHUNK: usize = 1 << 18;

/// The largest exponent field of each column's finite values, and whether a hot column has others.
fn fields<T: Element + FixedPoint>(x: &CsrMatrix<T>, labels: &Labels) -> (Vec<u32>, bool) {
    let fields: Vec<AtomicU32> = (0..x.cols()).map(|_| AtomicU32::new(0)).collect();
    let has_non_finite = AtomicBool::new(false);
    let entries = x
        .indices()
        .par_chunks(CHUNK)
        .zip(x.data().par_chunks(CHUNK));
    entries.for_each(|(indices, values)| {
        for (column, value) in indices.iter().zip(values) {
            let column = *column as usize;
            let field = value.exponent_field();
            if field != T::NON_FINITE {
                fields[column].fetch_max(field, Ordering::Relaxed);
            } else if labels.of_columns[column] & HOT != 0 {
                has_non_finite.store(true, Ordering::Relaxed);
            }
        }
    });
    let fields = fields.into_iter().map(AtomicU32::into_inner).collect();
    (fields, has_non_finite.into_inner())
}

fn pack_fields<T: Word>(fields: &[u32]) -> Vec<u32> {
    let of_word = fields_per_word(T::SIZE);
    let words = fields.chunks(of_word as usize);
    let pack = |word: &[u32]| {
        let placed = word
            .iter()
            .zip(0..)
            .map(|(field, i)| field << (i * (32 / of_word)));
        placed.sum()
    };
    words.map(pack).collect()
}

/// Which rows share a slice.
struct Slices {
    order: Option<Vec<u32>>,
    ends: [u32; 4],
}

impl Slices {
    /// Rows by class, the longest first, and by steps; each class begins with a slice.
    fn of(offsets: &[u64]) -> Self {
        let length = |row: u32| offsets[row as usize + 1] - offsets[row as usize];
        let key = |row: &u32| {
            let class = class(length(*row));
            (class, Reverse(length(*row).div_ceil(LANES[class].into())))
        };
        let rows = offsets.len() as u32 - 1;
        let is_sorted = (0..rows).is_sorted_by_key(|row| key(&row));
        let mut order: Vec<u32> = (0..rows).collect();
        if !is_sorted {
            order.par_sort_by_key(key);
        }
        let (mut ends, mut padded, mut slices) = ([0; 4], Vec::new(), 0);
        let mut rest = &order[..];
        for (number, end) in ends.iter_mut().enumerate() {
            let count = rest.partition_point(|row| class(length(*row)) == number);
            let (own, others) = rest.split_at(count);
            let rows = (WARP / LANES[number]) as usize;
            let end_of_class = padded.len() + count.next_multiple_of(rows);
            padded.extend(own);
            padded.resize(end_of_class, NONE);
            slices += count.div_ceil(rows) as u32;
            *end = slices;
            rest = others;
        }
        let is_padded_inside = padded.iter().zip(&order).any(|(a, b)| a != b);
        let order = (!is_sorted || is_padded_inside).then_some(padded);
        Slices { order, ends }
    }

    /// The class of a slice, its first position, and its rows.
    fn place(&self, slice: u32) -> (usize, u32) {
        let class = self.ends.iter().filter(|end| slice >= **end).count();
        let (mut position, mut from) = (0, 0);
        for (number, end) in self.ends.iter().enumerate() {
            let rows = WARP / LANES[number];
            if number == class {
                return (class, position + (slice - from) * rows);
            }
            position += (end - from) * rows;
            from = *end;
        }
        (class, position)
    }
}

/// The class of rows of so many entries.
fn class(length: u64) -> usize {
    let is_short = |lanes: &&u32| length <= u64::from(**lanes * HELD);
    LANES[1..].iter().filter(is_short).count()
}

/// What all tasks look at.
struct Copy<'a, T> {
    x: &'a CsrMatrix<T>,
    labels: &'a Labels,
    fields: &'a [u32],
    slices: &'a Slices,
}

impl<T: Element + FixedPoint> Copy<'_, T> {
    fn parts(&self) -> Vec<Part<T>> {
        let slices = self.slices.ends[3] as usize;
        let step = slices.div_ceil(16 * rayon::current_num_threads()).max(1);
        let firsts: Vec<usize> = (0..slices).step_by(step).collect();
        let part = |first: usize| {
            let mut part = Part::default();
            for slice in first..(first + step).min(slices) {
                self.copy_slice(slice as u32, &mut part);
            }
            part
        };
        firsts.into_par_iter().map(part).collect()
    }

    fn copy_slice(&self, slice: u32, part: &mut Part<T>) {
        let (class, first) = self.slices.place(slice);
        let lanes = LANES[class] as usize;
        let rows = WARP as usize / lanes;
        let entries: Vec<Range<usize>> = (0..rows)
            .map(|i| self.entries(first as usize + i))
            .collect();
        let longest = entries.iter().map(Range::len).max().unwrap_or(0);
        let (steps, base) = (longest.div_ceil(lanes), part.indices.len());
        part.steps.push(steps as u32);
        part.indices.resize(base + steps * WARP as usize, NONE);
        part.values.resize(part.indices.len(), T::from_f64(0.0));
        for (row, entries) in entries.into_iter().enumerate() {
            let before = part.cold_indices.len();
            for (i, entry) in entries.enumerate() {
                let at = base + i / lanes * WARP as usize + row * lanes + i % lanes;
                self.copy(entry, at, part);
            }
            part.lengths.push((part.cold_indices.len() - before) as u32);
        }
    }

    /// The entries of the row at a position.
    fn entries(&self, position: usize) -> Range<usize> {
        let row = match &self.slices.order {
            Some(order) => order[position] as usize,
            None => position,
        };
        if row >= self.x.rows() {
            return 0..0;
        }
        let offsets = self.x.indptr();
        let offsets = offsets.raw_storage();
        offsets[row] as usize..offsets[row + 1] as usize
    }

    fn copy(&self, entry: usize, at: usize, part: &mut Part<T>) {
        let (column, value) = (self.x.indices()[entry], self.x.data()[entry]);
        let label = self.labels.of_columns[column as usize];
        if label & HOT != 0 {
            let exponent = column_exponent::<T>(self.fields[column as usize]);
            part.indices[at] = label;
            part.values[at] = value.scaled(-exponent);
        } else {
            part.indices[at] = column;
            part.values[at] = value;
            part.cold_indices.push(label);
            part.cold_values.push(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row i has i mod 97 entries: of column 3, of every other column and of one of its own.
    fn matrix(rows: usize, cols: usize) -> CsrMatrix<f64> {
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        for row in 0..rows {
            let mut own: Vec<u32> = (0..row % 97).map(|i| (2 * i) as u32).collect();
            own.extend([3, (row % cols) as u32]);
            own.sort_unstable();
            own.dedup();
            indices.extend(own);
            offsets.push(indices.len() as u64);
        }
        let values = (1..=indices.len()).map(|i| i as f64).collect();
        csr_from_parts((rows, cols), offsets, indices, values).expect("a matrix")
    }

    /// (row, column, value) of all entries of the slices.
    fn entries(layout: &HotLayout<f64>) -> Vec<(usize, u32, u64)> {
        let (mut found, mut position) = (Vec::new(), 0);
        for slice in 0..layout.slices[3] {
            let class = layout.slices.iter().filter(|end| slice >= **end).count();
            let lanes = LANES[class] as usize;
            let steps = layout.offsets[slice as usize]..layout.offsets[slice as usize + 1];
            for at in (32 * steps.start) as usize..(32 * steps.end) as usize {
                let (index, value) = (layout.indices[at], layout.values[at]);
                let row = position + at % 32 / lanes;
                let row = layout
                    .order
                    .as_ref()
                    .map_or(row, |order| order[row] as usize);
                if index & HOT != 0 {
                    let column = layout.columns[(index ^ HOT) as usize];
                    let word = layout.exponents[column as usize / 2];
                    let field = word >> (column % 2 * 16) & 0xffff;
                    assert!(value.abs() < 1.0);
                    let value = value.scaled(column_exponent::<f64>(field));
                    found.push((row, column, value.to_bits()));
                } else if index != NONE {
                    found.push((row, index, value.to_bits()));
                }
            }
            position += 32 / lanes;
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn no_entry_is_lost_or_changed() {
        for x in [matrix(300, 400), matrix(3, 400), matrix(1, 4)] {
            let expected: Vec<_> = x
                .iter()
                .map(|(value, (row, column))| (row as usize, column, value.to_bits()))
                .collect();
            for (most, least) in [(0, 1), (7, 1), (1_000, 20), (1_000, 0)] {
                let layout = HotLayout::new(&x, HotSize { most, least }).expect("small");
                assert_eq!(entries(&layout), expected);
            }
        }
    }

    #[test]
    fn rows_that_share_a_slice_are_about_as_long() {
        let layout = HotLayout::new(&matrix(970, 400), HotSize { most: 3, least: 1 });
        let layout = layout.expect("small");
        let places = 32 * *layout.offsets.last().expect("an end") as usize;
        let entries = entries(&layout).len();
        assert!(
            places < entries * 5 / 4,
            "{places} places for {entries} entries"
        );
        let [long, medium, short, all] = layout.slices;
        assert!(0 < long && long < medium && medium < short && short < all);
        assert_eq!(layout.columns[0], 3);
    }

    #[test]
    fn even_rows_keep_their_order() {
        let offsets: Vec<u64> = (0..=50).map(|row| 20 * row).collect();
        let slices = Slices::of(&offsets);
        assert_eq!((slices.order, slices.ends), (None, [0, 0, 0, 7]));
        let none = Slices::of(&[0]);
        assert_eq!((none.order, none.ends), (None, [0; 4]));
    }

    #[test]
    fn columns_without_entries_are_left_out() {
        let x = csr_from_parts(
            (2, 9),
            vec![0, 2, 3],
            vec![1, 7, 7],
            vec![1.0_f32, 2.0, 3.0],
        );
        let layout = HotLayout::new(&x.expect("a matrix"), HotSize { most: 1, least: 1 });
        let layout = layout.expect("small");
        assert_eq!((layout.columns, layout.cold_columns), (vec![7], vec![1]));
    }
}
