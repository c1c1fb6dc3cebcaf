//! Entries put where lanes find them.
//!
//! Which of a row's entries comes in which step, and from which of its lanes, is free. Shared memory has 32 banks, each
//! of which serves one lane at a time, so entries are dealt out such that those that meet in a step are of different
//! banks: with 10,000 places drawn at random the busiest bank of a step has 2.2 lanes in the mean instead of 3.5.
//!
//! How much every slice takes follows from the lengths of its rows, so that tasks write their parts of the arrays side by
//! side.

use std::ops::Range;

use gpu_kernels::cta::WARP;
use gpu_kernels::fused::fixed_point::FixedPoint;
use gpu_kernels::fused::hot::NONE;
use rayon::prelude::*;

use super::HotData;
use super::deal::Banks;
use super::labels::{Label, Labels};
use super::slices::Slices;
use super::values::{Kept, ValueForm, to_bf16};
use crate::layout::parallel::{cut, sum_up};
use crate::matrix::{CsrMatrix, Element, csr_from_parts};

const LANES: usize = WARP as usize;
/// Slices whose steps one task counts.
const SLICES: usize = 1 << 10;
/// Tasks for each thread.
const TASKS: usize = 16;

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

/// Where entries go: all arrays, or the parts of a task.
struct Arrays<P, T, C> {
    places: P,
    values: T,
    packed: P,
    constants: T,
    ranks: P,
    cold_values: T,
    cold_columns: C,
    cold_entries: T,
}

/// The parts of one task, each behind what has been written.
type Part<'a, T> = Arrays<&'a mut [u32], &'a mut [T], &'a mut [u32]>;

/// What a task writes of each array.
#[derive(Clone, Copy)]
struct Extent {
    hot_steps: usize,
    cold_steps: usize,
    positions: usize,
    cold_entries: usize,
}

/// Elements for a hot step, by how values are stored.
struct PerStep {
    values: usize,
    packed: usize,
}

/// The entries of one row, as they are stored; values only where rows have different ones.
struct Row<T> {
    places: Vec<u16>,
    values: Vec<T>,
    /// Ranks.
    cold: Vec<(u32, T)>,
}

impl<T> Row<T> {
    const EMPTY: Self = Row {
        places: Vec::new(),
        values: Vec::new(),
        cold: Vec::new(),
    };

    fn clear(&mut self) {
        self.places.clear();
        self.values.clear();
        self.cold.clear();
    }
}

/// The first elements of what is left of an array, which are then no longer left.
fn take<'a, T>(left: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    let (taken, behind) = std::mem::take(left).split_at_mut(count);
    *left = behind;
    taken
}

impl<T: Element + FixedPoint> Copier<'_, T> {
    pub(super) fn all(&self) -> Copied<T> {
        let steps = self.steps();
        let offsets = self.cold_offsets();
        let tasks = self.tasks();
        let extents: Vec<Extent> = tasks
            .iter()
            .map(|task| self.extent(task, (&steps, &offsets)))
            .collect();
        let mut all = self.allocate(&extents);
        let parts = self.parts(&mut all, &extents);
        tasks
            .into_par_iter()
            .zip(parts)
            .for_each(|(task, part)| self.copy(task, &steps, part));
        let shape = (offsets.len() - 1, self.labels.cold.len());
        let values = self.data(all.values, all.packed, all.constants);
        let cold = csr_from_parts(shape, offsets, all.cold_columns, all.cold_entries);
        Copied {
            steps,
            places: all.places,
            values,
            ranks: all.ranks,
            cold_values: all.cold_values,
            cold: cold.expect("the ranks of a row were sorted"),
        }
    }

    /// The steps before each slice, and the number of steps: hot ones in the lower half, cold ones in the upper.
    fn steps(&self) -> Vec<u64> {
        let mut steps = vec![0; self.slices.count() as usize + 1];
        let each = steps[1..].par_iter_mut().enumerate().with_min_len(SLICES);
        each.for_each(|(slice, steps)| {
            let (lanes, first) = self.slices.place(slice as u32);
            let (mut hot, mut cold) = (0, 0);
            for position in first..first + LANES / lanes {
                let lengths = self.slices.lengths(position);
                (hot, cold) = (lengths.hot.max(hot), lengths.cold.max(cold));
            }
            let hot = u64::from(hot.div_ceil(2 * lanes as u32));
            *steps = hot | u64::from(cold.div_ceil(lanes as u32)) << 32;
        });
        sum_up(&mut steps);
        steps
    }

    /// The cold entries before each position, and their number.
    fn cold_offsets(&self) -> Vec<u64> {
        let mut offsets = vec![0; self.slices.positions() + 1];
        let each = offsets[1..].par_iter_mut().enumerate();
        let each = each.with_min_len(SLICES * LANES);
        each.for_each(|(position, offset)| {
            *offset = self.slices.lengths(position).cold.into();
        });
        sum_up(&mut offsets);
        offsets
    }

    fn tasks(&self) -> Vec<Range<u32>> {
        let slices = self.slices.count();
        let tasks = (TASKS * rayon::current_num_threads()) as u32;
        let step = slices.div_ceil(tasks).max(1);
        let firsts = (0..slices).step_by(step as usize);
        firsts
            .map(|first| first..(first + step).min(slices))
            .collect()
    }

    fn extent(&self, task: &Range<u32>, (steps, offsets): (&[u64], &[u64])) -> Extent {
        let [from, to] = [task.start, task.end].map(|slice| steps[slice as usize]);
        let [first, end] = [task.start, task.end].map(|slice| self.slices.place(slice).1);
        Extent {
            hot_steps: (to as u32 - from as u32) as usize,
            cold_steps: ((to >> 32) - (from >> 32)) as usize,
            positions: end - first,
            cold_entries: (offsets[end] - offsets[first]) as usize,
        }
    }

    fn per_step(&self) -> PerStep {
        let (values, packed) = match self.kept.form {
            ValueForm::Whole => (2, 0),
            ValueForm::Single => (0, 2),
            ValueForm::Half => (0, 1),
            ValueForm::OfRows | ValueForm::Equal => (0, 0),
        };
        PerStep {
            values: values * LANES,
            packed: packed * LANES,
        }
    }

    /// The lengths of what a task writes, in the order of [`Arrays`].
    fn lengths(&self, extent: &Extent) -> [usize; 8] {
        let PerStep { values, packed } = self.per_step();
        let is_constant = self.kept.form.is_constant();
        let ranks = extent.cold_steps * LANES;
        let has_constants = self.kept.form == ValueForm::OfRows;
        [
            extent.hot_steps * LANES,
            extent.hot_steps * values,
            extent.hot_steps * packed,
            if has_constants { extent.positions } else { 0 },
            ranks,
            if is_constant { 0 } else { ranks },
            extent.cold_entries,
            extent.cold_entries,
        ]
    }

    /// Zeros; the pages are first touched by the task that writes them.
    fn allocate(&self, extents: &[Extent]) -> Arrays<Vec<u32>, Vec<T>, Vec<u32>> {
        let mut lengths = [0; 8];
        for extent in extents {
            let own = self.lengths(extent);
            lengths
                .iter_mut()
                .zip(own)
                .for_each(|(all, own)| *all += own);
        }
        let zeros = |length| vec![T::from_f64(0.0); length];
        Arrays {
            places: vec![0; lengths[0]],
            values: zeros(lengths[1]),
            packed: vec![0; lengths[2]],
            constants: zeros(lengths[3]),
            ranks: vec![0; lengths[4]],
            cold_values: zeros(lengths[5]),
            cold_columns: vec![0; lengths[6]],
            cold_entries: zeros(lengths[7]),
        }
    }

    fn parts<'a>(
        &self,
        all: &'a mut Arrays<Vec<u32>, Vec<T>, Vec<u32>>,
        extents: &[Extent],
    ) -> Vec<Part<'a, T>> {
        let of = |array: usize| {
            extents
                .iter()
                .map(move |extent| self.lengths(extent)[array])
        };
        let mut places = cut(&mut all.places, of(0)).into_iter();
        let mut values = cut(&mut all.values, of(1)).into_iter();
        let mut packed = cut(&mut all.packed, of(2)).into_iter();
        let mut constants = cut(&mut all.constants, of(3)).into_iter();
        let mut ranks = cut(&mut all.ranks, of(4)).into_iter();
        let mut cold_values = cut(&mut all.cold_values, of(5)).into_iter();
        let mut cold_columns = cut(&mut all.cold_columns, of(6)).into_iter();
        let mut cold_entries = cut(&mut all.cold_entries, of(7)).into_iter();
        let part = || {
            Some(Part {
                places: places.next()?,
                values: values.next()?,
                packed: packed.next()?,
                constants: constants.next()?,
                ranks: ranks.next()?,
                cold_values: cold_values.next()?,
                cold_columns: cold_columns.next()?,
                cold_entries: cold_entries.next()?,
            })
        };
        std::iter::from_fn(part).collect()
    }

    fn copy(&self, task: Range<u32>, steps: &[u64], mut part: Part<'_, T>) {
        let offsets = self.x.indptr();
        let offsets = offsets.raw_storage();
        let mut rows = [Row::EMPTY; LANES];
        for slice in task {
            let (lanes, first) = self.slices.place(slice);
            let rows = &mut rows[..LANES / lanes];
            for (position, row) in (first..).zip(&mut *rows) {
                let row_of_x = self.slices.row(position, self.x.rows());
                let entries =
                    row_of_x.map_or(0..0, |row| offsets[row] as usize..offsets[row + 1] as usize);
                self.split(entries, row, &mut part);
            }
            let own = steps[slice as usize + 1] - steps[slice as usize];
            self.copy_cold(rows, (lanes, (own >> 32) as usize), &mut part);
            self.deal(rows, (lanes, own as u32 as usize), &mut part);
        }
    }

    /// Splits the entries of the row at a position; its cold ones, and what it has in common, go to `part`.
    fn split(&self, entries: Range<usize>, row: &mut Row<T>, part: &mut Part<'_, T>) {
        row.clear();
        let columns = &self.x.indices()[entries.clone()];
        let values = &self.x.data()[entries];
        if self.kept.form == ValueForm::OfRows {
            let first = columns.first().zip(values.first());
            let constant = first.map(|(column, value)| self.kept.stored(*column, *value));
            take(&mut part.constants, 1)[0] = constant.unwrap_or(T::from_f64(0.0));
        }
        if self.kept.form.is_constant() {
            let zero = T::from_f64(0.0);
            for column in columns {
                match self.labels.of(*column) {
                    Label::Place(place) => row.places.push(place as u16),
                    Label::Rank(rank) => row.cold.push((rank, zero)),
                }
            }
        } else {
            for (column, value) in columns.iter().zip(values) {
                let stored = self.kept.stored(*column, *value);
                match self.labels.of(*column) {
                    Label::Place(place) => {
                        row.places.push(place as u16);
                        row.values.push(stored);
                    }
                    Label::Rank(rank) => row.cold.push((rank, stored)),
                }
            }
        }
        row.cold.sort_unstable_by_key(|(rank, _)| *rank);
        let cold_columns = take(&mut part.cold_columns, row.cold.len());
        let cold_entries = take(&mut part.cold_entries, row.cold.len());
        let to = cold_columns.iter_mut().zip(cold_entries);
        for ((rank, stored), (column, entry)) in row.cold.iter().zip(to) {
            *column = *rank;
            *entry = self.cold_entry(*rank, *stored);
        }
    }

    /// The value of a cold column's entry among the panels; what a row has in common is a factor of the row there.
    fn cold_entry(&self, rank: u32, stored: T) -> T {
        if self.kept.form.is_constant() {
            return T::from_f64(1.0);
        }
        let column = self.labels.cold[rank as usize];
        stored.scaled(self.kept.exponent::<T>(column))
    }

    fn copy_cold(&self, rows: &[Row<T>], (lanes, steps): (usize, usize), part: &mut Part<'_, T>) {
        let ranks = take(&mut part.ranks, steps * LANES);
        ranks.fill(NONE);
        let is_constant = self.kept.form.is_constant();
        let values = if is_constant { 0 } else { steps * LANES };
        let values = take(&mut part.cold_values, values);
        for (number, row) in rows.iter().enumerate() {
            for (i, (rank, value)) in row.cold.iter().enumerate() {
                let at = i / lanes * LANES + number * lanes + i % lanes;
                ranks[at] = *rank;
                if !is_constant {
                    values[at] = *value;
                }
            }
        }
    }

    /// Deals the rows' hot entries out to their lanes, pair after pair.
    fn deal(&self, rows: &mut [Row<T>], (lanes, steps): (usize, usize), part: &mut Part<'_, T>) {
        let PerStep { values, packed } = self.per_step();
        let places = take(&mut part.places, steps * LANES);
        let values = take(&mut part.values, steps * values);
        let packed = take(&mut part.packed, steps * packed);
        for step in places.chunks_exact_mut(LANES) {
            // Each lane has a spare place.
            for (lane, pair) in step.iter_mut().enumerate() {
                *pair = (self.labels.hot.len() + lane) as u32 * 0x1_0001;
            }
        }
        let mut banks = Banks::of(rows.iter().map(|row| &row.places[..]));
        for turn in 0..2 * steps {
            banks.begin_step();
            for (number, row) in rows.iter_mut().enumerate() {
                for lane in number * lanes..(number + 1) * lanes {
                    let Some(at) = banks.best(&row.places) else {
                        break;
                    };
                    let place = row.places.swap_remove(at);
                    banks.take(place);
                    let pair = turn / 2 * LANES + lane;
                    set_half(&mut places[pair], turn % 2, place);
                    if !self.kept.form.is_constant() {
                        let value = row.values.swap_remove(at);
                        self.put((&mut *values, &mut *packed), (turn, lane), value);
                    }
                }
            }
        }
    }

    /// Writes the value of a lane's entry: of the first or second of a pair in the order of turns.
    fn put(
        &self,
        (values, packed): (&mut [T], &mut [u32]),
        (turn, lane): (usize, usize),
        value: T,
    ) {
        let number = Element::to_f64(value);
        match self.kept.form {
            ValueForm::Whole => values[turn * LANES + lane] = value,
            ValueForm::Single => packed[turn * LANES + lane] = (number as f32).to_bits(),
            ValueForm::Half => {
                let pair = turn / 2 * LANES + lane;
                set_half(&mut packed[pair], turn % 2, to_bf16(number));
            }
            ValueForm::OfRows | ValueForm::Equal => {}
        }
    }

    fn data(&self, values: Vec<T>, packed: Vec<u32>, constants: Vec<T>) -> HotData<T> {
        let exponent = || self.kept.exponent::<T>(0);
        match self.kept.form {
            ValueForm::Whole => HotData::Whole(values),
            ValueForm::Single => HotData::Single(packed),
            ValueForm::Half => HotData::Half(packed),
            ValueForm::OfRows => HotData::OfRows {
                constants,
                exponent: exponent(),
            },
            ValueForm::Equal => HotData::Equal {
                constant: self.kept.stored(0, self.x.data()[0]),
                exponent: exponent(),
            },
        }
    }
}

fn set_half(word: &mut u32, which: usize, half: u16) {
    let shift = 16 * which;
    *word = *word & !(0xffff << shift) | u32::from(half) << shift;
}
