//! Entries in chunks, as a warp takes them.

use std::ops::Range;

use gpu_kernels::fused::panels::{CHUNK, SPARE};

use super::chunk::{Ends, Widths};
use super::ranges::Work;
use super::sorted::Entries;
use super::{REACH, SECTOR};
use crate::layout::parallel::cut;
use crate::matrix::Element;
use crate::parallel;

/// Entries of a chunk.
const ENTRIES: usize = CHUNK as usize;
/// Chunks that one task fills.
const PER_TASK: usize = 1 << 8;

/// The chunks of all panels.
pub(super) struct Packed<T> {
    pub(super) keys: Vec<u32>,
    pub(super) values: Vec<T>,
    pub(super) bases: Vec<u32>,
    /// Of each panel.
    pub(super) work: Vec<Work>,
}

/// Neighbouring chunks of a panel.
struct Task {
    panel: usize,
    /// Where each of the chunks begins, and the last ends.
    starts: Vec<usize>,
}

impl Task {
    fn chunks(&self) -> usize {
        self.starts.len() - 1
    }
}

/// Fills chunks with entries in the order of their inputs; what is left over adds zeros behind the `width` sums.
pub(super) fn pack<T: Element>(entries: &Entries<T>, width: u32) -> Packed<T> {
    let starts = parallel::map(entries.panels.len().saturating_sub(1), |panel| {
        starts(
            &entries.ends,
            entries.panels[panel]..entries.panels[panel + 1],
        )
    });
    let tasks: Vec<Task> = starts
        .iter()
        .enumerate()
        .flat_map(|(panel, starts)| tasks(panel, starts))
        .collect();
    let chunks: usize = tasks.iter().map(Task::chunks).sum();
    let mut keys = vec![0; chunks * ENTRIES];
    let values_of_chunk = if entries.values.is_empty() {
        0
    } else {
        ENTRIES
    };
    let mut values = vec![T::from_f64(0.0); chunks * values_of_chunk];
    let mut bases = vec![0; chunks];
    let lengths = |each: usize| tasks.iter().map(move |task| task.chunks() * each);
    let keys_of = cut(&mut keys, lengths(ENTRIES));
    let values_of = cut(&mut values, lengths(values_of_chunk));
    let bases_of = cut(&mut bases, lengths(1));
    let fill = |_, (((task, keys), values), bases): (((&Task, _), _), _)| {
        let filler = Filler { entries, width };
        filler.fill(task, (keys, values, bases));
        filler.sectors(task)
    };
    let all = tasks.iter().zip(keys_of).zip(values_of).zip(bases_of);
    let sectors: Vec<u64> = parallel::map_items(all, fill);
    let mut work: Vec<Work> = starts
        .iter()
        .map(|starts| Work::of_chunks(starts))
        .collect();
    for (task, sectors) in tasks.iter().zip(sectors) {
        work[task.panel].sectors += sectors;
    }
    Packed {
        keys,
        values,
        bases,
        work,
    }
}

impl Work {
    fn of_chunks(starts: &[usize]) -> Self {
        Work {
            chunks: starts.len() as u32 - 1,
            sectors: 0,
        }
    }
}

/// The input of an entry.
fn input(ends: u64) -> u32 {
    (ends >> 16) as u32
}

/// Where the chunks of a panel begin, and the last ends: each is full, or the next entry is out of reach.
fn starts(ends: &[u64], panel: Range<usize>) -> Vec<usize> {
    let mut starts = Vec::with_capacity(panel.len() / ENTRIES + 2);
    let mut at = panel.start;
    starts.push(at);
    while at < panel.end {
        let full = &ends[at..(at + ENTRIES).min(panel.end)];
        let is_near = |ends: &u64| input(*ends) - input(full[0]) <= REACH;
        at += match full.last() {
            Some(last) if is_near(last) => full.len(),
            _ => full.partition_point(is_near),
        };
        starts.push(at);
    }
    starts
}

fn tasks(panel: usize, starts: &[usize]) -> Vec<Task> {
    let firsts = (0..starts.len() - 1).step_by(PER_TASK);
    let task = |first: usize| Task {
        panel,
        starts: starts[first..(first + PER_TASK + 1).min(starts.len())].to_vec(),
    };
    firsts.map(task).collect()
}

/// What all tasks look at.
struct Filler<'a, T> {
    entries: &'a Entries<T>,
    width: u32,
}

impl<T: Element> Filler<'_, T> {
    fn fill(&self, task: &Task, (keys, values, bases): (&mut [u32], &mut [T], &mut [u32])) {
        let mut wanted: Vec<Ends> = Vec::with_capacity(ENTRIES);
        let mut values = values.chunks_mut(ENTRIES);
        let chunks = keys.chunks_mut(ENTRIES).zip(bases);
        for ((keys, base), ends) in chunks.zip(task.starts.windows(2)) {
            let of_chunk = ends[0]..ends[1];
            let ends = &self.entries.ends[of_chunk.clone()];
            *base = input(ends[0]);
            // The four places of a lane are neighbours.
            for (at, key) in (0..).zip(&mut *keys) {
                *key = (self.width + at * SPARE / CHUNK) << 16;
            }
            wanted.clear();
            wanted.extend(ends.iter().map(|ends| (input(*ends), *ends as u16)));
            let places = Widths::of_bytes(size_of::<T>()).places(&wanted);
            for (at, (input, sum)) in places.iter().zip(&wanted) {
                keys[usize::from(*at)] = u32::from(*sum) << 16 | (input - *base);
            }
            if let Some(values) = values.next() {
                for (at, value) in places.iter().zip(&self.entries.values[of_chunk]) {
                    values[usize::from(*at)] = *value;
                }
            }
        }
    }

    /// Sectors of the inputs that are requested, but for one that the chunk before has requested already.
    fn sectors(&self, task: &Task) -> u64 {
        let sector = |ends: &u64| input(*ends) / (SECTOR / size_of::<T>()) as u32;
        let (first, end) = (task.starts[0], task.starts[task.chunks()]);
        let is_first = first == self.entries.panels[task.panel];
        let ends = &self.entries.ends[if is_first { first } else { first - 1 }..end];
        let changes = ends
            .windows(2)
            .filter(|pair| sector(&pair[0]) != sector(&pair[1]));
        changes.count() as u64 + u64::from(is_first && first < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_full_or_end_where_entries_are_out_of_reach() {
        let mut inputs: Vec<u32> = (0..300).collect();
        inputs.extend([70_000, 135_535, 135_536]);
        let inputs: Vec<u64> = inputs.into_iter().map(|i| u64::from(i) << 16 | 9).collect();
        assert_eq!(starts(&inputs, 0..303), [0, 128, 256, 300, 302, 303]);
        assert_eq!(starts(&inputs, 40..40), [40]);
        assert_eq!(starts(&inputs, 300..301), [300, 301]);
    }

    #[test]
    fn sectors_are_counted_as_if_in_one_go() {
        let inputs: Vec<u32> = (0..100_000).map(|i| i / 3 * 2).collect();
        let entries = Entries {
            ends: inputs.iter().map(|i| u64::from(*i) << 16).collect(),
            values: vec![1.0_f32; inputs.len()],
            panels: vec![0, 1_000, 1_000, 100_000],
        };
        let packed = pack(&entries, 10);
        let expected = |panel: &[usize]| {
            let mut of_panel = inputs[panel[0]..panel[1]].to_vec();
            of_panel.iter_mut().for_each(|input| *input /= 8);
            of_panel.dedup();
            of_panel.len() as u64
        };
        let expected: Vec<u64> = entries.panels.windows(2).map(expected).collect();
        let found: Vec<u64> = packed.work.iter().map(|work| work.sectors).collect();
        assert_eq!(found, expected);
    }
}
