//! How unevenly entries are spread over columns, from a sample.

use rayon::prelude::*;

use crate::parallel;

/// Entries that are looked at, in runs that lie evenly over the matrix: two halves, so that columns that are frequent by
/// chance in one are not so in the other.
const SAMPLE: usize = 1 << 19;
const RUN: usize = 64;
/// Runs that one task counts at least.
const RUNS_PER_TASK: usize = 1 << 9;
/// Entries for each counter that a further task has to set to zero and to add up.
const ENTRIES_PER_COUNTER: usize = 4;
/// Counters for each entry, at most: with more, sorting is faster than setting them to zero and looking through them.
const COUNTERS_PER_ENTRY: usize = 8;

/// Neighbouring columns whose elements share a line of 128 bytes: with 16, 8 and 4 bytes each.
pub const LINES: [u32; 3] = [8, 16, 32];

/// Shares of all entries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Skew {
    /// Of the most frequent column.
    pub busiest: f64,
    /// Of the most frequent neighbours, as many as share a line of 128 bytes: 8, 16 and 32.
    pub lines: [f64; LINES.len()],
    /// Of the most frequent columns, as many as were requested.
    pub frequent: f64,
}

impl Skew {
    /// What a sample of the column indices of all rows says, or all where they are few; of this many frequent columns of
    /// `cols`.
    pub fn of(indices: &[u32], cols: usize, frequent: usize) -> Skew {
        let step = (indices.len() / SAMPLE).max(1);
        let sample = |first, step| Sample {
            indices,
            first,
            step,
        };
        let (ranking, rest) = match step {
            1 => (sample(0, 1), sample(0, 1)),
            _ => (sample(0, 2 * step), sample(step, 2 * step)),
        };
        let counted = match cols <= COUNTERS_PER_ENTRY * ranking.entries() {
            true => of_few_columns((&ranking, &rest), cols, frequent),
            false => of_many_columns((&ranking, &rest), frequent),
        };
        let ranked = |count: usize| count as f64 / ranking.entries().max(1) as f64;
        Skew {
            busiest: ranked(counted.busiest),
            lines: counted.lines.map(ranked),
            frequent: counted.found as f64 / rest.entries().max(1) as f64,
        }
    }
}

/// What two samples say.
#[derive(Debug, PartialEq)]
struct Counted {
    /// Entries of the first in its most frequent column.
    busiest: usize,
    /// The same of its most frequent neighbours.
    lines: [usize; LINES.len()],
    /// Entries of the second in columns that are frequent in the first.
    found: usize,
}

/// Entries of the most frequent neighbours, of columns in ascending order with how often each is there.
fn of_lines(tally: impl Iterator<Item = (u32, usize)> + Clone) -> [usize; LINES.len()] {
    LINES.map(|line| {
        let (mut most, mut of, mut sum) = (0, 0, 0);
        for (column, count) in tally.clone() {
            if column / line != of {
                (of, sum) = (column / line, 0);
            }
            sum += count;
            most = most.max(sum);
        }
        most
    })
}

/// Every `step`th run of column indices.
struct Sample<'a> {
    indices: &'a [u32],
    first: usize,
    step: usize,
}

impl Sample<'_> {
    fn runs(&self) -> usize {
        let all = self.indices.len().div_ceil(RUN);
        all.saturating_sub(self.first).div_ceil(self.step)
    }

    fn run(&self, number: usize) -> &[u32] {
        let from = (self.first + number * self.step) * RUN;
        &self.indices[from..self.indices.len().min(from + RUN)]
    }

    fn entries(&self) -> usize {
        // The last run alone may be shorter.
        let last = self.runs().checked_sub(1);
        last.map_or(0, |last| last * RUN + self.run(last).len())
    }

    /// What `count` makes of parts of the runs, `tasks` at most.
    fn map<R: Send>(
        &self,
        tasks: usize,
        count: impl Fn(&mut dyn Iterator<Item = &[u32]>) -> R + Sync,
    ) -> Vec<R> {
        let runs = self.runs();
        let tasks = tasks.min(runs.div_ceil(RUNS_PER_TASK)).max(1);
        parallel::map(tasks, |task| {
            let own = runs * task / tasks..runs * (task + 1) / tasks;
            count(&mut own.map(|number| self.run(number)))
        })
    }

    /// Its columns in ascending order, each with how often it is there. Sorted by all threads: half a million numbers took
    /// one thread 30 ms, more than a small X takes to get to a device.
    fn tally(&self) -> Vec<(u32, usize)> {
        let parts = self.map(usize::MAX, |runs| {
            runs.flatten().copied().collect::<Vec<_>>()
        });
        let mut all = parts.concat();
        all.par_sort_unstable();
        let alike = all.chunk_by(|a, b| a == b);
        alike.map(|run| (run[0], run.len())).collect()
    }
}

/// With a counter for each column.
fn of_few_columns(
    (ranking, rest): (&Sample<'_>, &Sample<'_>),
    cols: usize,
    frequent: usize,
) -> Counted {
    let tasks = ranking.entries() / (ENTRIES_PER_COUNTER * cols.max(1));
    let tasks = tasks.min(rayon::current_num_threads());
    let counts = ranking.map(tasks, |runs| {
        let mut counts = vec![0_u32; cols];
        let columns = runs.flatten();
        columns.for_each(|column| counts[*column as usize] += 1);
        counts
    });
    let add = |mut all: Vec<u32>, own: Vec<u32>| {
        all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
        all
    };
    let counts = counts.into_iter().reduce(add).unwrap_or_default();
    let busiest = counts.iter().max().map_or(0, |count| *count as usize);
    let is_frequent = most(&counts, busiest, frequent);
    let found = rest.map(usize::MAX, |runs| {
        let columns = runs.flatten();
        columns
            .filter(|column| is_frequent[**column as usize])
            .count()
    });
    let tally = (0_u32..).zip(counts.iter().map(|count| *count as usize));
    Counted {
        busiest,
        lines: of_lines(tally),
        found: found.into_iter().sum(),
    }
}

/// Which columns are the most frequent ones, as many as are wanted; of columns that are as frequent the last ones. None that
/// is nowhere.
fn most(counts: &[u32], busiest: usize, wanted: usize) -> Vec<bool> {
    let mut with_count = vec![0_usize; busiest + 1];
    counts
        .iter()
        .for_each(|count| with_count[*count as usize] += 1);
    // Columns of the least count may be wanted in part.
    let (mut least, mut left) = (busiest + 1, wanted);
    while least > 1 && with_count[least - 1] <= left {
        least -= 1;
        left -= with_count[least];
    }
    let mut is_frequent: Vec<bool> = counts
        .iter()
        .map(|count| *count as usize >= least)
        .collect();
    let of_part = counts.iter().zip(&mut is_frequent).rev();
    let in_part = of_part.filter(|(count, _)| **count > 0 && **count as usize == least - 1);
    in_part
        .take(left)
        .for_each(|(_, is_frequent)| *is_frequent = true);
    is_frequent
}

/// The same of many more columns than there are entries: of sorted columns.
fn of_many_columns((ranking, rest): (&Sample<'_>, &Sample<'_>), frequent: usize) -> Counted {
    let (mut ranked, rest) = rayon::join(|| ranking.tally(), || rest.tally());
    let busiest = ranked.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let lines = of_lines(ranked.iter().copied());
    if frequent < ranked.len() {
        // Of columns that are as frequent the last ones.
        let first = |(column, count): &(u32, usize)| std::cmp::Reverse((*count, *column));
        ranked.select_nth_unstable_by_key(frequent, first);
        ranked.truncate(frequent);
        ranked.sort_unstable();
    }
    let mut wanted = ranked.iter().map(|(column, _)| *column).peekable();
    let own = rest.iter().filter(|(column, _)| {
        while wanted.next_if(|next| next < column).is_some() {}
        wanted.peek() == Some(column)
    });
    Counted {
        busiest,
        lines,
        found: own.map(|(_, count)| count).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{CsrMatrix, csr_from_parts};

    /// Rows of eight entries: the first column, one of the next nine, six others.
    fn matrix(rows: usize) -> CsrMatrix<f32> {
        let hash = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let mut indices = Vec::new();
        for row in 0..rows {
            let other = |k: usize| 10 + 20_000 * k as u32 + (hash(8 * row + k) % 20_000) as u32;
            indices.extend([0, 1 + (hash(row) % 9) as u32]);
            indices.extend((0..6).map(other));
        }
        let offsets = (0..=rows).map(|row| 8 * row as u64).collect();
        let values = vec![1.0; indices.len()];
        csr_from_parts((rows, 200_000), offsets, indices, values).expect("a matrix")
    }

    #[test]
    fn few_entries_are_counted() {
        let skew = Skew::of(matrix(100).indices(), 200_000, 10);
        assert_eq!(skew.busiest, 0.125);
        // The first column and seven of the next nine, of entries of which two of eight are in the first ten.
        assert!((skew.lines[0] - (1.0 + 7.0 / 9.0) / 8.0).abs() < 0.02);
        assert!((skew.lines[1] - 0.25).abs() < 0.01 && (skew.lines[2] - 0.25).abs() < 0.01);
        assert!((skew.frequent - 0.25).abs() < 0.02, "{skew:?}");
        assert_eq!(Skew::of(&[], 9, 10).frequent, 0.0);
    }

    #[test]
    fn many_entries_are_sampled_without_bias() {
        let skew = Skew::of(matrix(300_000).indices(), 200_000, 1_000);
        assert!((skew.busiest - 0.125).abs() < 0.01, "{skew:?}");
        // 990 of 120,000 alike are frequent by chance, which says nothing of the others.
        assert!(
            (skew.frequent - 0.25 - 0.75 * 990.0 / 120_000.0).abs() < 0.01,
            "{skew:?}"
        );
    }

    #[test]
    fn counters_and_sorted_columns_say_the_same() {
        // As many entries as are counted, as are looked at in two halves, and with a run that is cut.
        for rows in [1, 100, 60_000, 140_001] {
            let x = matrix(rows);
            let step = (x.indices().len() / SAMPLE).max(1);
            let sample = |first| Sample {
                indices: x.indices(),
                first,
                step: 2 * step,
            };
            let both = (&sample(0), &sample(step));
            for frequent in [0, 1, 5, 10, 11, 1_000, 150_000, 200_000] {
                assert_eq!(
                    of_few_columns(both, 200_000, frequent),
                    of_many_columns(both, frequent),
                    "{rows} rows, {frequent} columns"
                );
            }
        }
    }

    #[test]
    fn of_columns_as_frequent_the_last_ones_are_chosen() {
        assert_eq!(
            most(&[2, 0, 3, 2, 2], 3, 3),
            [false, false, true, true, true]
        );
        assert_eq!(most(&[2, 0, 3], 3, 9), [true, false, true]);
        assert_eq!(most(&[0, 0], 0, 1), [false, false]);
        assert_eq!(most(&[1, 4], 4, 0), [false, false]);
    }
}
