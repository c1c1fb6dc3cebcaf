//! Entries panel by panel, in each in the order of their inputs.

use super::Place;
use super::extents::Extents;
use crate::layout::parallel::cut;
use crate::matrix::{CsrMatrix, Element};
use crate::parallel;

/// Entries that one task takes at least.
const PER_TASK: usize = 1 << 18;
/// Tasks for each thread, so that none waits long for the last.
const TASKS: usize = 4;

/// Entries, one after the other.
pub(super) struct Entries<T> {
    /// The input of each, and behind it, in 16 bits, the place of its output in the panel.
    pub(super) ends: Vec<u64>,
    /// None where all are 1.
    pub(super) values: Vec<T>,
    /// The first entry of each panel, and the number of entries.
    pub(super) panels: Vec<usize>,
}

impl<T: Element> Entries<T> {
    fn zeros(panels: Vec<usize>, weights: Weights) -> Self {
        let count = panels.last().copied().unwrap_or(0);
        let values = match weights {
            Weights::Values => count,
            Weights::Ones => 0,
        };
        Entries {
            ends: vec![0; count],
            values: vec![T::from_f64(0.0); values],
            panels,
        }
    }

    /// Parts of these lengths, one after the other.
    fn parts(&mut self, lengths: &[usize]) -> Vec<Part<'_, T>> {
        let has_values = !self.values.is_empty();
        let of_values = |length: &usize| if has_values { *length } else { 0 };
        let ends = cut(&mut self.ends, lengths.iter().copied());
        let values = cut(&mut self.values, lengths.iter().map(of_values));
        let parts = ends.into_iter().zip(values);
        let part = |(ends, values)| Part {
            ends,
            values,
            filled: 0,
        };
        parts.map(part).collect()
    }
}

/// Entries that one task writes.
struct Part<'a, T> {
    ends: &'a mut [u64],
    values: &'a mut [T],
    filled: usize,
}

/// What entries are multiplied by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weights {
    /// Their values.
    Values,
    /// By 1: values are not looked at.
    Ones,
}

/// An input, and the place of an output in its panel.
fn ends(input: u32, sum: u16) -> u64 {
    u64::from(input) << 16 | u64::from(sum)
}

impl<T> Part<'_, T> {
    fn push(&mut self, ends: u64, value: impl FnOnce() -> T) {
        self.ends[self.filled] = ends;
        if let Some(to) = self.values.get_mut(self.filled) {
            *to = value();
        }
        self.filled += 1;
    }
}

/// The entries of panels of rows; columns are the inputs, and those of one in the order of the rows.
pub(super) fn of_rows<T: Element>(x: &CsrMatrix<T>, extents: &Extents) -> Entries<T> {
    let offsets = x.indptr();
    let offsets = offsets.raw_storage();
    let rows_of = |panel: usize| {
        let extent = &extents.panels[panel];
        let first = (extent.first as usize).min(x.rows());
        first..(first + extent.outputs as usize).min(x.rows())
    };
    let panels = extents.panels.len();
    let firsts = (0..panels).map(|panel| offsets[rows_of(panel).start] as usize);
    let mut entries = Entries::zeros(firsts.chain([x.nnz()]).collect(), Weights::Values);
    let lengths: Vec<usize> = entries.panels.windows(2).map(|p| p[1] - p[0]).collect();
    parallel::for_each_item(entries.parts(&lengths), |panel, mut part| {
        let rows = rows_of(panel);
        let mut own = Vec::with_capacity(part.ends.len());
        for (sum, row) in (0_u16..=u16::MAX).zip(rows) {
            for i in offsets[row] as usize..offsets[row + 1] as usize {
                own.push((ends(x.indices()[i], sum), x.data()[i]));
            }
        }
        own.sort_unstable_by_key(|(ends, _)| *ends);
        own.into_iter()
            .for_each(|(ends, value)| part.push(ends, || value));
    });
    entries
}

/// The entries of panels of columns, of which each has a place; rows are the inputs, and those of one in the order of the
/// columns of `x`.
pub(super) fn by_panel<T: Element>(
    x: &CsrMatrix<T>,
    (places, weights): (&[Place], Weights),
    panels: usize,
) -> Entries<T> {
    let offsets = x.indptr();
    let offsets = offsets.raw_storage();
    let rows = tasks(offsets);
    let count = |rows: &[usize]| {
        let mut counts = vec![0_usize; panels];
        for column in &x.indices()[offsets[rows[0]] as usize..offsets[rows[1]] as usize] {
            counts[places[*column as usize].panel as usize] += 1;
        }
        counts
    };
    let counts = parallel::map(rows.len().saturating_sub(1), |task| {
        count(&rows[task..task + 2])
    });
    let mut lengths = Vec::with_capacity(panels * counts.len());
    let mut firsts = vec![0];
    for panel in 0..panels {
        lengths.extend(counts.iter().map(|counts| counts[panel]));
        let of_panel: usize = counts.iter().map(|counts| counts[panel]).sum();
        firsts.push(firsts[panel] + of_panel);
    }
    let mut entries = Entries::zeros(firsts, weights);
    let mut of_tasks: Vec<Vec<Part<'_, T>>> = counts.iter().map(|_| Vec::new()).collect();
    let mut parts = entries.parts(&lengths).into_iter();
    for _ in 0..panels {
        let of_panel = of_tasks.iter_mut().zip(parts.by_ref());
        of_panel.for_each(|(task, part)| task.push(part));
    }
    parallel::for_each_item(of_tasks, |task, mut parts| {
        for row in rows[task]..rows[task + 1] {
            for i in offsets[row] as usize..offsets[row + 1] as usize {
                let Place { panel, sum } = places[x.indices()[i] as usize];
                parts[panel as usize].push(ends(row as u32, sum), || x.data()[i]);
            }
        }
    });
    entries
}

/// Rows at which to cut into tasks of about as many entries; the first is 0, the last m.
fn tasks(offsets: &[u64]) -> Vec<usize> {
    let entries = offsets.last().copied().unwrap_or(0);
    let most = TASKS * rayon::current_num_threads();
    let tasks = (entries as usize).div_ceil(PER_TASK).clamp(1, most) as u64;
    let cut = |task| offsets.partition_point(|offset| *offset < entries * task / tasks);
    let rows = offsets.len().saturating_sub(1);
    (0..tasks).map(cut).chain([rows]).collect()
}
