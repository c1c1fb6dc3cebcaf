//! Entries put where lanes find them.
//!
//! Which of a row's entries comes in which step, and from which of its lanes, is free. Shared memory has 32 banks, each
//! of which serves one lane at a time, so entries are dealt out such that those that meet in a step are of different
//! banks: with 10,000 places drawn at random the busiest bank of a step has 2.2 lanes in the mean in place of 3.5.

use std::ops::Range;

use gpu_kernels::cta::WARP;
use gpu_kernels::fused::fixed_point::FixedPoint;
use gpu_kernels::fused::hot::NONE;
use rayon::prelude::*;

use super::HotData;
use super::labels::{Label, Labels};
use super::slices::Slices;
use super::values::{Kept, ValueForm, to_bf16};
use crate::matrix::{CsrMatrix, Element, csr_from_parts};

const LANES: usize = WARP as usize;
/// Banks of shared memory.
const BANKS: usize = 32;
/// Entries of a row among which one is chosen for a lane.
const WINDOW: usize = 64;

/// What all tasks look at.
pub(super) struct Copier<'a, T> {
    pub(super) x: &'a CsrMatrix<T>,
    pub(super) labels: &'a Labels,
    pub(super) kept: &'a Kept,
    pub(super) slices: &'a Slices,
}

/// The arrays of a layout that depend on the entries.
pub(super) struct Copied<T> {
    pub(super) steps: Vec<u64>,
    pub(super) places: Vec<u32>,
    pub(super) values: HotData<T>,
    pub(super) ranks: Vec<u32>,
    pub(super) cold_values: Vec<T>,
    pub(super) cold: CsrMatrix<T>,
}

/// What one task copies.
#[derive(Default)]
struct Part<T> {
    /// Hot and cold steps of each slice.
    steps: Vec<(u32, u32)>,
    places: Vec<u32>,
    values: Vec<T>,
    packed: Vec<u32>,
    constants: Vec<T>,
    ranks: Vec<u32>,
    cold_values: Vec<T>,
    /// Cold entries of each position.
    lengths: Vec<u32>,
    cold_columns: Vec<u32>,
    cold_entries: Vec<T>,
}

/// Entries of one row, as they are stored.
struct Row<T> {
    /// Places.
    hot: Vec<(u32, T)>,
    /// Ranks.
    cold: Vec<(u32, T)>,
}

impl<T: Element + FixedPoint> Copier<'_, T> {
    pub(super) fn all(&self) -> Copied<T> {
        let slices = self.slices.count() as usize;
        let step = slices.div_ceil(16 * rayon::current_num_threads()).max(1);
        let firsts: Vec<usize> = (0..slices).step_by(step).collect();
        let part = |first: usize| {
            let mut part = Part::default();
            for slice in first..(first + step).min(slices) {
                self.copy_slice(slice as u32, &mut part);
            }
            part
        };
        self.join(firsts.into_par_iter().map(part).collect())
    }

    fn copy_slice(&self, slice: u32, part: &mut Part<T>) {
        let (lanes, first) = self.slices.place(slice);
        let mut rows: Vec<Row<T>> = (first..first + LANES / lanes)
            .map(|position| self.row(position, part))
            .collect();
        let longest = |len: fn(&Row<T>) -> usize| rows.iter().map(len).max().unwrap_or(0);
        let hot = longest(|row| row.hot.len()).div_ceil(2 * lanes);
        let cold = longest(|row| row.cold.len()).div_ceil(lanes);
        part.steps.push((hot as u32, cold as u32));
        self.copy_cold(&rows, (lanes, cold), part);
        self.deal(&mut rows, (lanes, hot), part);
    }

    /// The entries of the row at a position; its cold ones, and what it has in common, go to `part`.
    fn row(&self, position: usize, part: &mut Part<T>) -> Row<T> {
        let (mut hot, mut cold) = (Vec::new(), Vec::new());
        let entries = self.entries(position);
        if self.kept.form == ValueForm::OfRows {
            let first = entries.clone().next();
            let constant = first.map(|i| self.kept.stored(self.x.indices()[i], self.x.data()[i]));
            part.constants.push(constant.unwrap_or(T::from_f64(0.0)));
        }
        for i in entries {
            let (column, value) = (self.x.indices()[i], self.x.data()[i]);
            let stored = self.kept.stored(column, value);
            match self.labels.of(column) {
                Label::Place(place) => hot.push((place, stored)),
                Label::Rank(rank) => cold.push((rank, stored)),
            }
        }
        cold.sort_unstable_by_key(|(rank, _)| *rank);
        part.lengths.push(cold.len() as u32);
        part.cold_columns.extend(cold.iter().map(|(rank, _)| *rank));
        let of_panels = cold
            .iter()
            .map(|(rank, stored)| self.cold_entry(*rank, *stored));
        part.cold_entries.extend(of_panels);
        Row { hot, cold }
    }

    /// The value of a cold column's entry among the panels; what a row has in common is a factor of the row there.
    fn cold_entry(&self, rank: u32, stored: T) -> T {
        if self.kept.form.is_constant() {
            return T::from_f64(1.0);
        }
        let column = self.labels.cold[rank as usize];
        stored.scaled(self.kept.exponent::<T>(column))
    }

    /// The entries of the row at a position.
    fn entries(&self, position: usize) -> Range<usize> {
        let offsets = self.x.indptr();
        let offsets = offsets.raw_storage();
        match self.slices.row(position, self.x.rows()) {
            Some(row) => offsets[row] as usize..offsets[row + 1] as usize,
            None => 0..0,
        }
    }

    fn copy_cold(&self, rows: &[Row<T>], (lanes, steps): (usize, usize), part: &mut Part<T>) {
        let base = part.ranks.len();
        part.ranks.resize(base + steps * LANES, NONE);
        if !self.kept.form.is_constant() {
            part.cold_values.resize(part.ranks.len(), T::from_f64(0.0));
        }
        for (number, row) in rows.iter().enumerate() {
            for (i, (rank, value)) in row.cold.iter().enumerate() {
                let at = base + i / lanes * LANES + number * lanes + i % lanes;
                part.ranks[at] = *rank;
                if !self.kept.form.is_constant() {
                    part.cold_values[at] = *value;
                }
            }
        }
    }

    /// Deals the rows' hot entries out to their lanes, pair after pair.
    fn deal(&self, rows: &mut [Row<T>], (lanes, steps): (usize, usize), part: &mut Part<T>) {
        let base = part.places.len() / LANES;
        for _ in 0..steps {
            // Each lane has a spare place.
            let spare = (0..LANES).map(|lane| (self.labels.hot.len() + lane) as u32 * 0x1_0001);
            part.places.extend(spare);
        }
        self.room_for_values(base + steps, part);
        let mut left = [0_u32; BANKS];
        for (place, _) in rows.iter().flat_map(|row| &row.hot) {
            left[*place as usize % BANKS] += 1;
        }
        for turn in 0..2 * steps {
            let mut taken = [0_u32; BANKS];
            for (number, row) in rows.iter_mut().enumerate() {
                for lane in number * lanes..(number + 1) * lanes {
                    let Some((place, value)) = take(&mut row.hot, &taken, &left) else {
                        break;
                    };
                    taken[place as usize % BANKS] += 1;
                    left[place as usize % BANKS] -= 1;
                    self.put(part, (base + turn / 2, lane, turn % 2), (place, value));
                }
            }
        }
    }

    fn room_for_values(&self, steps: usize, part: &mut Part<T>) {
        let (whole, packed) = match self.kept.form {
            ValueForm::Whole => (2, 0),
            ValueForm::Single => (0, 2),
            ValueForm::Half => (0, 1),
            ValueForm::OfRows | ValueForm::Equal => (0, 0),
        };
        part.values.resize(whole * steps * LANES, T::from_f64(0.0));
        part.packed.resize(packed * steps * LANES, 0);
    }

    /// Writes an entry: the first or second of a lane's pair of a step.
    fn put(
        &self,
        part: &mut Part<T>,
        (step, lane, which): (usize, usize, usize),
        (place, value): (u32, T),
    ) {
        let pair = step * LANES + lane;
        let single = (2 * step + which) * LANES + lane;
        set_half(&mut part.places[pair], which, place as u16);
        let number = Element::to_f64(value);
        match self.kept.form {
            ValueForm::Whole => part.values[single] = value,
            ValueForm::Single => part.packed[single] = (number as f32).to_bits(),
            ValueForm::Half => set_half(&mut part.packed[pair], which, to_bf16(number)),
            ValueForm::OfRows | ValueForm::Equal => {}
        }
    }

    fn join(&self, parts: Vec<Part<T>>) -> Copied<T> {
        let mut all = Part::default();
        let (mut steps, mut sum, mut cold_offsets) = (vec![0], 0, vec![0]);
        let mut entry = 0;
        for part in parts {
            steps.extend(part.steps.iter().map(|(hot, cold)| {
                sum += u64::from(*hot) | u64::from(*cold) << 32;
                sum
            }));
            cold_offsets.extend(part.lengths.iter().map(|length| {
                entry += u64::from(*length);
                entry
            }));
            all.append(part);
        }
        let shape = (cold_offsets.len() - 1, self.labels.cold.len());
        let values = self.data(&mut all);
        let cold = csr_from_parts(shape, cold_offsets, all.cold_columns, all.cold_entries);
        Copied {
            steps,
            places: all.places,
            values,
            ranks: all.ranks,
            cold_values: all.cold_values,
            cold: cold.expect("the ranks of a row were sorted"),
        }
    }

    fn data(&self, all: &mut Part<T>) -> HotData<T> {
        let (values, packed) = (
            std::mem::take(&mut all.values),
            std::mem::take(&mut all.packed),
        );
        let exponent = || self.kept.exponent::<T>(0);
        match self.kept.form {
            ValueForm::Whole => HotData::Whole(values),
            ValueForm::Single => HotData::Single(packed),
            ValueForm::Half => HotData::Half(packed),
            ValueForm::OfRows => HotData::OfRows {
                constants: std::mem::take(&mut all.constants),
                exponent: exponent(),
            },
            ValueForm::Equal => HotData::Equal {
                constant: self.kept.stored(0, self.x.data()[0]),
                exponent: exponent(),
            },
        }
    }
}

impl<T> Part<T> {
    fn append(&mut self, part: Part<T>) {
        self.places.extend(part.places);
        self.values.extend(part.values);
        self.packed.extend(part.packed);
        self.constants.extend(part.constants);
        self.ranks.extend(part.ranks);
        self.cold_values.extend(part.cold_values);
        self.cold_columns.extend(part.cold_columns);
        self.cold_entries.extend(part.cold_entries);
    }
}

/// Takes the entry whose bank has been taken least in this step, of those the one whose bank has most entries left.
fn take<T>(
    entries: &mut Vec<(u32, T)>,
    taken: &[u32; BANKS],
    left: &[u32; BANKS],
) -> Option<(u32, T)> {
    let from = entries.len().saturating_sub(WINDOW);
    let cost = |entry: &(u32, T)| {
        let bank = entry.0 as usize % BANKS;
        (taken[bank], u32::MAX - left[bank])
    };
    let window = entries[from..].iter().enumerate();
    let (best, _) = window.min_by_key(|(_, entry)| cost(entry))?;
    Some(entries.swap_remove(from + best))
}

fn set_half(word: &mut u32, which: usize, half: u16) {
    let shift = 16 * which;
    *word = *word & !(0xffff << shift) | u32::from(half) << shift;
}
