//! Which columns are hot, and the ranks of the others.

use std::cmp::Reverse;

use gpu_kernels::In;
use gpu_kernels::forms::hot::{DIGITS, OrderArgs, OrderVariant, RUN};
use rayon::prelude::*;

use super::launch::{Order, no_order};
use super::steps::{HotStep, Steps};
use crate::device::Buffer;
use crate::layout::head::HeadColumns;
use crate::layout::hot::HotSize;
use crate::ops::OpError;

/// Entries of a sample, about.
const SAMPLE: usize = 1 << 22;
/// Columns among which hot ones are chosen, for each of these.
const CHOICE: usize = 4;
/// Columns whose entries a block adds up before all do: others have too few for additions to wait for each other.
const HEADS: usize = 8_192;

/// The names of all columns.
pub(super) struct Columns {
    /// The column of each place, the most frequent first.
    pub hot: Buffer<u32>,
    /// [`HeadColumns`] of these.
    pub members: Buffer<u32>,
    pub places: Buffer<u32>,
    /// The column of each rank.
    pub cold: Buffer<u32>,
    /// The rank of each column that is not hot.
    pub ranks: Buffer<u32>,
    /// How many entries each column has.
    pub counts: Buffer<u32>,
    /// Entries of the most frequent column.
    pub busiest: u64,
}

impl Columns {
    /// Of entries of these columns, of `cols` in all.
    pub(super) fn of(
        order: &Order<'_>,
        (indices, cols): (In<'_, u32>, usize),
        size: HotSize,
        steps: &mut Steps<'_>,
    ) -> Result<Self, OpError> {
        let most = HEADS.max(CHOICE.saturating_mul(size.most));
        let candidates = sampled(order, indices, (most, SAMPLE))?;
        steps.done(HotStep::Sample)?;
        let counts = counted(order, (indices, cols), &candidates)?;
        steps.done(HotStep::Count)?;
        let (hot, busiest) = hottest(order, (candidates, &counts), size)?;
        let members = HeadColumns::of(&hot, cols);
        let device = order.device;
        let mut columns = Columns {
            hot: device.upload(&hot)?,
            members: device.upload(&members.members)?,
            places: device.upload(&members.places)?,
            cold: device.zeros(0)?,
            ranks: device.zeros(cols)?,
            counts,
            busiest,
        };
        steps.done(HotStep::Choose)?;
        columns.rank(order, cols)?;
        steps.done(HotStep::Rank)?;
        Ok(columns)
    }

    /// Ranks the columns that are not hot and have entries: the most frequent first by the number of binary digits.
    fn rank(&mut self, order: &Order<'_>, cols: usize) -> Result<(), OpError> {
        let mut keys = order.device.zeros(cols)?;
        let args = OrderArgs {
            members: self.members.input(),
            fields: self.counts.input(),
            to: keys.output(),
            ..no_order(cols)
        };
        order.run(OrderVariant::Columns, cols, args)?;
        let tallies = order.tally(&keys, DIGITS as usize)?;
        let mut end = 0;
        let starts = tallies.totals.iter().map(|count| {
            end += count;
            end - count
        });
        let starts = starts.collect();
        self.cold = order.device.zeros(end as usize)?;
        let to = (&mut self.cold, Some(&mut self.ranks));
        order.sort(&keys, (&tallies, starts), to)
    }
}

/// The columns of a sample of about `wanted` of these entries, the most frequent first, `most` of them.
fn sampled(
    order: &Order<'_>,
    indices: In<'_, u32>,
    (most, wanted): (usize, usize),
) -> Result<Vec<u32>, OpError> {
    let (entries, run) = (indices.len() as usize, RUN as usize);
    let step = entries.div_ceil(wanted).max(1);
    let runs = entries.div_ceil(run).div_ceil(step);
    let last = (entries - (runs - 1) * step * run).min(run);
    let sampled = (runs - 1) * run + last;
    let mut sample = order.device.zeros(sampled)?;
    let args = OrderArgs {
        step: step as u32,
        indices,
        to: sample.output(),
        ..no_order(sampled)
    };
    order.run(OrderVariant::Sampled, sampled, args)?;
    Ok(most_frequent(sample.to_vec()?, most))
}

/// The most frequent of these columns, `most` of them; of those that are as frequent the lowest.
fn most_frequent(mut sample: Vec<u32>, most: usize) -> Vec<u32> {
    sample.par_sort_unstable();
    let same = || sample.par_chunk_by(|a, b| a == b);
    // Most columns are there once or twice, and few of them are wanted: only those are put in order that may be.
    let least = times_of_last(same().map(<[u32]>::len), most);
    let wanted = same().filter(|same| same.len() >= least);
    let mut seen: Vec<(Reverse<usize>, u32)> =
        wanted.map(|same| (Reverse(same.len()), same[0])).collect();
    seen.par_sort_unstable();
    seen.truncate(most);
    seen.into_iter().map(|(_, column)| column).collect()
}

/// Numbers of times from which on columns count as one.
const MANY_TIMES: usize = 64;

/// How often the last of the `most` most frequent columns is there at least, from how often each is.
fn times_of_last(times: impl ParallelIterator<Item = usize>, most: usize) -> usize {
    let none = || [0; MANY_TIMES + 1];
    let counts = times.fold(none, |mut counts, times| {
        counts[times.min(MANY_TIMES)] += 1;
        counts
    });
    let counts = counts.reduce(none, |a, b| {
        std::array::from_fn(|times| a[times] + b[times])
    });
    let mut columns = 0;
    let as_often = counts.into_iter().enumerate().rev().find(|(_, of_times)| {
        columns += of_times;
        columns >= most
    });
    as_often.map_or(0, |(times, _)| times)
}

/// How many entries each column has, the most frequent ones of a sample told.
fn counted(
    order: &Order<'_>,
    (indices, cols): (In<'_, u32>, usize),
    frequent: &[u32],
) -> Result<Buffer<u32>, OpError> {
    let device = order.device;
    let heads = &frequent[..frequent.len().min(HEADS)];
    let members = HeadColumns::of(heads, cols);
    let (heads, places) = (device.upload(heads)?, device.upload(&members.places)?);
    let members = device.upload(&members.members)?;
    // Two in an element.
    let mut counts: Buffer<u32> = device.zeros(cols.next_multiple_of(2))?;
    let entries = indices.len() as usize;
    let args = OrderArgs {
        indices,
        members: members.input(),
        places: places.input(),
        columns: heads.input(),
        counts: counts.output().pairs(),
        ..no_order(entries)
    };
    order.run(OrderVariant::Counted, entries, args)?;
    Ok(counts)
}

/// The columns that are hot, the most frequent first, and the entries of the most frequent one.
fn hottest(
    order: &Order<'_>,
    (candidates, counts): (Vec<u32>, &Buffer<u32>),
    size: HotSize,
) -> Result<(Vec<u32>, u64), OpError> {
    let columns = order.device.upload(&candidates)?;
    let counts = order.pack(&columns, (Some(counts), 0), 1)?.to_vec()?;
    let busiest = counts.iter().copied().max().unwrap_or(0);
    let pairs = counts.into_iter().zip(candidates);
    let frequent = pairs.filter(|(count, _)| u64::from(*count) >= size.least.max(1));
    let mut hot: Vec<(Reverse<u32>, u32)> = frequent
        .map(|(count, column)| (Reverse(count), column))
        .collect();
    hot.par_sort_unstable();
    hot.truncate(size.most);
    let hot = hot.into_iter().map(|(_, column)| column);
    Ok((hot.collect(), u64::from(busiest)))
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::device::{Device, EmulatorOptions};

    #[test]
    fn the_most_frequent_columns_come_first_and_the_lowest_of_equals() {
        // Column j is there 1 + (7j mod 100) times: once, 64 times, and more often.
        let times = |column: u32| 1 + (7 * column % 100) as usize;
        let sample = (0..1_000).flat_map(|column| std::iter::repeat_n(column, times(column)));
        let sample: Vec<u32> = sample.rev().collect();
        let mut all: Vec<u32> = (0..1_000).collect();
        all.sort_by_key(|column| Reverse(times(*column)));
        for most in [0, 1, 50, 400, 995, 1_000, 2_000] {
            let found = most_frequent(sample.clone(), most);
            assert_eq!(found, all[..most.min(1_000)], "{most}");
        }
        assert_eq!(most_frequent(Vec::new(), 3), Vec::<u32>::new());
    }

    #[test]
    fn runs_at_even_distances_are_in_a_sample() {
        let device = Device::emulator(EmulatorOptions::default());
        // Columns are the numbers of runs, but for every third entry. The last run is not full.
        let entries = 8 * RUN as u32 + 100;
        let column = |i: u32| {
            if i.is_multiple_of(3) {
                77
            } else {
                i / RUN as u32
            }
        };
        let indices: Vec<u32> = (0..entries).map(column).collect();
        let indices = device.upload(&indices).expect("memory");
        let order = Order::new(&device);
        let found = |most, wanted| {
            let found = sampled(&order, indices.input(), (most, wanted));
            found.expect("a sample")
        };
        // Runs that begin with a multiple of three have one entry less of their own.
        assert_eq!(found(100, usize::MAX), [77, 1, 2, 4, 5, 7, 0, 3, 6, 8]);
        // Every fourth one: entries of runs 0, 4 and 8.
        assert_eq!(found(100, 2_100), [77, 4, 0, 8]);
        assert_eq!(found(2, 2_100), [77, 4]);
    }
}
