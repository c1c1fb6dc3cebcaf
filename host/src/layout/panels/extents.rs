//! Where panels begin and end, and which of them a block takes as they are.

use rayon::prelude::*;

use super::PanelSize;
use super::gathers::{Count, Gathers};
use crate::plan::fused::are_made_as_many;
use crate::plan::rates::panels::{
    ENTRY_FS, OUTPUT_FS, SECTOR_FS, SECTOR_OF_RESULT_FS, WHOLE_OUTPUT_FS,
};

/// Outputs that lie side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) first: u32,
    pub(super) outputs: u32,
    /// The range that takes the whole panel; none where its chunks are dealt out.
    pub(super) range: Option<u32>,
}

/// Panels, and what shares them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extents {
    pub(super) panels: Vec<Extent>,
    /// The first this many ranges share the chunks of panels that none takes whole.
    pub(super) sharing: u32,
}

impl Extents {
    /// Outputs of the widest panel.
    pub(super) fn width(&self) -> usize {
        let widths = self.panels.iter().map(|panel| panel.outputs as usize);
        widths.max().unwrap_or(1)
    }
}

/// Panels of one size, and as many for every range where there are nearly as many as ranges or more, so that blocks that start
/// together walk the inputs together, and no panel is cut (X·y of 4,000,000 rows and 30,000,000 columns takes 0.27 ms
/// more on an H200 where panels are cut); all their chunks are dealt out.
pub(super) fn even(outputs: usize, size: PanelSize) -> Extents {
    let panels = outputs.div_ceil(size.widest).max(1);
    let panels = if are_made_as_many(panels, size.ranges) {
        panels.next_multiple_of(size.ranges)
    } else {
        panels
    };
    let mut extents = Vec::new();
    split(
        &mut extents,
        (0, outputs),
        outputs.div_ceil(panels).max(1),
        None,
    );
    Extents {
        panels: extents,
        sharing: size.ranges as u32,
    }
}

/// Panels of outputs with this many entries each, the most frequent first, over this many inputs, of which this many lie in a
/// sector.
///
/// Frequent outputs see an entry in nearly every sector of the inputs: the wider their panels, the more entries share
/// what is read, and their chunks are dealt out to some ranges. Rare ones gather every input by itself, however wide the
/// panel, and a panel that is cut costs its sums twice: the other ranges begin and end between two outputs, so that all
/// take equally long.
pub(super) fn by_frequency<C: Count>(
    counts: &[C],
    (inputs, in_sector): (usize, usize),
    size: PanelSize,
) -> Extents {
    let outputs = counts.len();
    let costs = Costs::of(counts, (inputs, in_sector), size);
    let gathers_fs = costs.gathers.all_fs();
    // One output alone must not keep others waiting.
    let is_even = |sharing: &usize| {
        costs.gathers.heaviest_fs * (size.ranges - sharing) as u64 <= gathers_fs / HEAVY
    };
    let sharing = costs.sharing(size.ranges).filter(is_even);
    let Some(sharing) = sharing.filter(|_| costs.streams < outputs) else {
        return even(outputs, size);
    };
    let left = size.ranges - sharing;
    let mut panels = Vec::new();
    split(&mut panels, (0, costs.streams), size.widest, None);
    let mut first = costs.streams;
    for range in 0..left {
        let quota = gathers_fs * (range as u64 + 1) / left as u64;
        let end = costs.streams + costs.gathers.reaching(quota);
        let owner = (sharing + range) as u32;
        split(&mut panels, (first, end), size.widest, Some(owner));
        first = end;
    }
    Extents {
        panels,
        sharing: sharing as u32,
    }
}

/// An output that takes this part of a range's time is too heavy for a range of whole outputs.
const HEAVY: u64 = 4;

/// Panels of one size.
fn split(
    panels: &mut Vec<Extent>,
    (first, end): (usize, usize),
    widest: usize,
    range: Option<u32>,
) {
    let all = (end - first).div_ceil(widest).max(1);
    let width = (end - first).div_ceil(all).max(1);
    for first in (first..end).step_by(width) {
        panels.push(Extent {
            first: first as u32,
            outputs: width.min(end - first) as u32,
            range,
        });
    }
}

/// What outputs are expected to take, femtoseconds.
struct Costs<'c, C> {
    /// The first this many outputs are worth being read as a stream.
    streams: usize,
    streams_fs: u64,
    /// What a range takes that adds the sums of such a panel.
    flush_fs: u64,
    /// The outputs behind them.
    gathers: Gathers<'c, C>,
}

impl<'c, C: Count> Costs<'c, C> {
    fn of(counts: &'c [C], (inputs, in_sector): (usize, usize), size: PanelSize) -> Self {
        let sectors = inputs.div_ceil(in_sector) as u64;
        let windows = counts.par_chunks(size.widest);
        let windows: Vec<u64> = windows
            .map(|window| window.iter().map(|count| (*count).into()).sum())
            .collect();
        let (mut streams, mut streams_fs) = (0, 0);
        for entries in windows {
            let outputs = size.widest.min(counts.len() - streams);
            let read = distinct(entries, sectors);
            let flush_fs = outputs as u64 * OUTPUT_FS;
            // What a further panel costs more than it saves.
            if entries.saturating_sub(read) * SECTOR_FS <= flush_fs {
                break;
            }
            streams += outputs;
            streams_fs += entries * ENTRY_FS + read * SECTOR_FS + flush_fs;
        }
        let output_fs = whole_output_fs(counts.len(), size.result, in_sector);
        Costs {
            streams,
            streams_fs,
            flush_fs: streams.min(size.widest) as u64 * OUTPUT_FS,
            gathers: Gathers::of(&counts[streams..], output_fs),
        }
    }

    /// How many of the ranges share the streams, so that all take equally long; none where there are too few for streams and
    /// others.
    fn sharing(&self, ranges: usize) -> Option<usize> {
        let of_share = |work: u64, ranges: usize| match (work, ranges) {
            (0, _) => Some(0),
            (work, ranges) => work.checked_div(ranges as u64),
        };
        let longest = |sharing: usize| {
            let flushes_fs = sharing as u64 * self.flush_fs;
            let streams = of_share(self.streams_fs + flushes_fs, sharing)?;
            let gathers = of_share(self.gathers.all_fs(), ranges - sharing)?;
            Some((streams.max(gathers), sharing))
        };
        let all = (0..=ranges).filter_map(longest);
        // Of equal ones the least: without streams there is nothing to share.
        all.min().map(|(_, sharing)| sharing)
    }
}

/// Femtoseconds for an output of a panel that a range takes whole, `outputs` of `result` elements: adding to a sector of the
/// result takes most of it, which as many share as meet there.
fn whole_output_fs(outputs: usize, result: usize, in_sector: usize) -> u64 {
    let share = (outputs as f64 / result.max(1) as f64).clamp(1e-3, 1.0);
    let touched = 1.0 - (1.0 - share).powi(in_sector as i32);
    (WHOLE_OUTPUT_FS + SECTOR_OF_RESULT_FS * touched / (in_sector as f64 * share)) as u64
}

/// Sectors that this many entries touch at random, of all.
fn distinct(entries: u64, sectors: u64) -> u64 {
    let all = sectors.max(1) as f64;
    (all * (1.0 - (-(entries as f64) / all).exp())) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: PanelSize = PanelSize {
        widest: 100,
        ranges: 12,
        result: 50_000,
    };

    /// As by Zipf's law.
    fn counts(outputs: usize) -> Vec<u64> {
        (1..=outputs)
            .map(|rank| (40_000 / (rank + 20)) as u64 + 1)
            .collect()
    }

    /// Every output is in one panel, in order; none is wider than allowed.
    #[track_caller]
    fn check(extents: &Extents, outputs: usize) {
        let mut next = 0;
        for panel in &extents.panels {
            assert_eq!(panel.first as usize, next);
            assert!((1..=SIZE.widest as u32).contains(&panel.outputs));
            assert!(panel.range.is_none_or(|range| range < SIZE.ranges as u32));
            next += panel.outputs as usize;
        }
        assert_eq!(next, outputs);
        assert!(extents.panels.is_sorted_by_key(|panel| panel.range));
    }

    #[test]
    fn every_output_is_in_one_panel() {
        for outputs in [0, 1, 2, 99, 100, 101, 1_199, 1_200, 1_201, 50_000] {
            check(&even(outputs, SIZE), outputs);
            check(&by_frequency(&counts(outputs), (4_000, 8), SIZE), outputs);
            check(
                &by_frequency(&vec![0_u64; outputs], (2_000, 4), SIZE),
                outputs,
            );
            check(&by_frequency(&vec![3_u32; outputs], (0, 8), SIZE), outputs);
        }
    }

    #[test]
    fn frequent_outputs_are_shared_and_rare_ones_taken_whole() {
        let extents = by_frequency(&counts(50_000), (40_000, 8), SIZE);
        let shared = extents.panels.iter().filter(|panel| panel.range.is_none());
        assert!(shared.count() >= 2, "{extents:?}");
        assert!((1..SIZE.ranges as u32).contains(&extents.sharing));
        let taken = |range| {
            extents
                .panels
                .iter()
                .any(|panel| panel.range == Some(range))
        };
        assert!((0..SIZE.ranges as u32).all(|range| taken(range) == (range >= extents.sharing)));
    }

    #[test]
    fn ranges_of_whole_outputs_take_equally_long() {
        let counts = counts(50_000);
        let extents = by_frequency(&counts, (40_000, 8), SIZE);
        let mut taken = [0; SIZE.ranges];
        for panel in &extents.panels {
            let of_panel = &counts[panel.first as usize..][..panel.outputs as usize];
            let entries: u64 = of_panel.iter().sum();
            if let Some(range) = panel.range {
                let sums = u64::from(panel.outputs) * whole_output_fs(50_000, SIZE.result, 8);
                taken[range as usize] += entries * (ENTRY_FS + SECTOR_FS) + sums;
            }
        }
        let taken = &taken[extents.sharing as usize..];
        let (least, most) = (taken.iter().min().unwrap(), taken.iter().max().unwrap());
        assert!(most - least < most / 50, "{taken:?}");
    }

    #[test]
    fn nearly_as_many_panels_as_ranges_are_made_as_many() {
        for (outputs, panels) in [(600, 6), (601, 12), (1_100, 12), (1_200, 12), (1_201, 24)] {
            assert_eq!(even(outputs, SIZE).panels.len(), panels, "{outputs}");
        }
    }

    #[test]
    fn one_range_takes_all_that_there_is() {
        let one = PanelSize { ranges: 1, ..SIZE };
        let counts = counts(50_000);
        assert_eq!(by_frequency(&counts, (40_000, 8), one), even(50_000, one));
        let rare = by_frequency(&[1_u64; 50], (40_000, 8), one);
        assert_eq!((rare.sharing, rare.panels.len()), (0, 1));
        assert_eq!(rare.panels[0].range, Some(0));
    }

    #[test]
    fn an_output_that_is_too_heavy_for_a_range_is_cut() {
        let mut counts = vec![1_u64; 5_000];
        counts[0] = 4_000;
        let extents = by_frequency(&counts, (8 << 20, 8), SIZE);
        assert_eq!(extents, even(5_000, SIZE));
    }
}
