//! When w is computed in two slices of columns, of which the first is added up over the GPUs while the second is computed.
//!
//! That takes a form of X by columns (the transpose, or panels), over which w is complete slice by slice and X is read once all
//! the same. The first slice is the one whose sum has more to hide behind: where entries are in few columns, those come last,
//! whatever their numbers.

use std::ops::Range;

use serde::Serialize;

use super::{Columns, Machines};

/// Slices begin at multiples of this many columns: kernels read and write vectors from there on.
const ALIGNMENT: u64 = 32;
/// Places at which columns may be cut.
const PLACES: u64 = 64;
/// Microseconds of what a second slice adds: launches of two kernels, the end of the first slice's blocks, and events of two
/// streams. An assumption.
const FURTHER_SLICE_US: f64 = 15.0;
/// The part of a GPU that kernels of the link take while they run: 16 of 132 multiprocessors, and of the memory's rate.
/// An assumption.
const OCCUPIED: f64 = 0.15;
/// Blocks of a slice that is computed beside a sum, for each that runs at the same time: the link's kernels get their places
/// when the first blocks have ended, and those that are left run on the others meanwhile.
pub const TURNS: u32 = 4;
/// What is hidden has to be this many times what it costs.
const MARGIN: f64 = 2.0;

/// What members know of `Xᵀ·p` over forms by columns.
#[derive(Debug, Clone, Copy)]
pub struct Slicing<'a> {
    /// Microseconds that it takes the slowest.
    pub columns_us: f64,
    /// The columns.
    pub columns: &'a Columns,
    /// Entries of all members in each [stretch](Slicing::stretch) of columns.
    pub entries: &'a [u64],
}

/// Two slices, and what they are expected to change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overlap {
    /// The columns that are computed first, and the others.
    pub slices: [Range<u64>; 2],
    /// Microseconds of the sum that pass beside kernels.
    pub hidden_us: f64,
    /// Microseconds that this costs.
    pub cost_us: f64,
}

impl Overlap {
    /// Microseconds less than in one slice.
    pub fn saves_us(&self) -> f64 {
        self.hidden_us - self.cost_us
    }
}

/// Columns and entries of a slice.
struct Part {
    columns: Range<u64>,
    entries: u64,
}

impl Slicing<'_> {
    /// Columns of a stretch that is not cut.
    ///
    /// ```
    /// use warpfuse::plan::scaling::Slicing;
    /// assert_eq!(Slicing::stretch(29_890_095), 467_040);
    /// assert_eq!(Slicing::stretch(10), 32);
    /// ```
    pub fn stretch(cols: u64) -> u64 {
        cols.div_ceil(PLACES).max(1).next_multiple_of(ALIGNMENT)
    }

    /// Columns in this many slices of about as many, each of which begins where kernels can; fewer where there are too few.
    ///
    /// ```
    /// use warpfuse::plan::scaling::Slicing;
    /// assert_eq!(Slicing::even(100, 3), [0..64, 64..100]);
    /// assert_eq!(Slicing::even(0, 3), [0..0]);
    /// ```
    pub fn even(cols: u64, slices: u32) -> Vec<Range<u64>> {
        let each = cols.div_ceil(u64::from(slices.max(1)));
        let each = each.max(1).next_multiple_of(ALIGNMENT);
        let count = cols.div_ceil(each).max(1);
        let slice = |number| number * each..cols.min((number + 1) * each);
        (0..count).map(slice).collect()
    }

    /// The columns cut behind `place` stretches, in both orders.
    fn cut(&self, place: usize) -> [[Part; 2]; 2] {
        let (cols, stretch) = (self.columns.cols, Slicing::stretch(self.columns.cols));
        let at = cols.min(place as u64 * stretch);
        let place = place.min(self.entries.len());
        let part = |columns, entries: &[u64]| Part {
            columns,
            entries: entries.iter().sum(),
        };
        let low = || part(0..at, &self.entries[..place]);
        let high = || part(at..cols, &self.entries[place..]);
        [[low(), high()], [high(), low()]]
    }
}

impl Machines {
    /// Whether sums of this many bytes have anything to hide that is worth it, whatever a product takes.
    pub fn may_overlap(&self, bytes: u64) -> bool {
        let hidden_us = self.sum_us(bytes) - self.sum_us_of_many(0);
        self.all() > 1 && hidden_us > MARGIN * (FURTHER_SLICE_US + OCCUPIED * hidden_us)
    }

    /// The two slices in which a product and its sum are expected to take least; `None` where one is as good.
    ///
    /// ```
    /// use warpfuse::plan::scaling::{Columns, Machines, NETWORK, NVLINK, ONE_LAUNCH, Slicing};
    /// let four = Machines { gpus: 4, nodes: 1, link: NVLINK, one_launch: ONE_LAUNCH, network: NETWORK };
    /// let columns = Columns { cols: 30_000_000, element: 4, summed: 4, memory_gb_s: 3_000.0 };
    /// let slicing = Slicing { columns_us: 3_000.0, columns: &columns, entries: &[1; 64] };
    /// let overlap = four.overlap(&slicing).expect("it pays");
    /// assert!(overlap.saves_us() > 300.0, "{overlap:?}");
    /// // A sum of few columns has nothing to hide.
    /// let columns = Columns { cols: 10_000, ..columns };
    /// assert_eq!(four.overlap(&Slicing { columns: &columns, ..slicing }), None);
    /// ```
    pub fn overlap(&self, of: &Slicing<'_>) -> Option<Overlap> {
        let cuts = (1..of.entries.len()).flat_map(|place| of.cut(place));
        let cuts = cuts.filter(|parts| parts.iter().all(|part| !part.columns.is_empty()));
        let overlaps = cuts.map(|parts| self.overlap_of(of, parts));
        let best = overlaps.max_by(|a, b| a.saves_us().total_cmp(&b.saves_us()))?;
        (best.hidden_us > MARGIN * best.cost_us).then_some(best)
    }

    fn overlap_of(&self, of: &Slicing<'_>, [first, last]: [Part; 2]) -> Overlap {
        let all = (first.entries + last.entries).max(1);
        let last_us = of.columns_us * last.entries as f64 / all as f64;
        let bytes = |cols: u64| cols * of.columns.summed;
        let width = |part: &Part| part.columns.end - part.columns.start;
        let sum_us = |part: &Part| self.sum_us_of_many(bytes(width(part)));
        // The sum begins when the first blocks have ended.
        let beside_us = sum_us(&first).min(last_us * (1.0 - 1.0 / f64::from(TURNS)));
        let in_view_us = sum_us(&first) - beside_us + sum_us(&last);
        Overlap {
            slices: [first.columns, last.columns],
            hidden_us: self.sum_us(bytes(of.columns.cols)) - in_view_us,
            cost_us: FURTHER_SLICE_US + OCCUPIED * beside_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NETWORK, NVLINK, ONE_LAUNCH};
    use super::*;

    fn machines(gpus: u32) -> Machines {
        Machines {
            gpus,
            nodes: 1,
            link: NVLINK,
            one_launch: ONE_LAUNCH,
            network: NETWORK,
        }
    }

    fn columns(cols: u64) -> Columns {
        Columns {
            cols,
            element: 4,
            summed: 4,
            memory_gb_s: 3_000.0,
        }
    }

    fn overlap(gpus: u32, cols: u64, columns_us: f64, entries: &[u64]) -> Option<Overlap> {
        let columns = columns(cols);
        machines(gpus).overlap(&Slicing {
            columns_us,
            columns: &columns,
            entries,
        })
    }

    #[test]
    fn no_more_is_hidden_than_a_sum_takes_nor_than_the_second_slice() {
        for gpus in [2, 4, 8] {
            for cols in [1 << 20, 1 << 23, 29_890_095] {
                for columns_us in [100.0, 1_000.0, 10_000.0] {
                    let Some(found) = overlap(gpus, cols, columns_us, &[1; 64]) else {
                        continue;
                    };
                    let sum_us = machines(gpus).sum_us(4 * cols);
                    assert!(found.hidden_us < sum_us && found.hidden_us < columns_us);
                    assert!(found.saves_us() > 0.0);
                    let [first, last] = &found.slices;
                    assert!(first.start.min(last.start) == 0 && first.end.max(last.end) == cols);
                    assert!(first.end == last.start || last.end == first.start);
                    assert!(
                        first.start.is_multiple_of(ALIGNMENT)
                            && last.start.is_multiple_of(ALIGNMENT)
                    );
                    assert!(machines(gpus).may_overlap(4 * cols));
                }
            }
        }
    }

    #[test]
    fn the_columns_with_most_entries_come_last() {
        let mut entries = [1; 64];
        entries[0] = 1_000;
        let first = overlap(4, 29_890_095, 1_500.0, &entries).expect("it pays");
        assert_eq!(first.slices[1].start, 0, "{first:?}");
        entries.reverse();
        let last = overlap(4, 29_890_095, 1_500.0, &entries).expect("it pays");
        assert_eq!(last.slices[1].end, 29_890_095, "{last:?}");
    }

    #[test]
    fn one_gpu_and_short_sums_have_one_slice() {
        assert_eq!(overlap(1, 29_890_095, 1e4, &[1; 64]), None);
        assert_eq!(overlap(8, 1 << 12, 1e4, &[1; 64]), None);
        assert!(!machines(1).may_overlap(1 << 30) && !machines(8).may_overlap(1 << 14));
        // No kernel to hide behind.
        assert_eq!(overlap(8, 29_890_095, 0.0, &[1; 64]), None);
        assert_eq!(overlap(8, 29_890_095, 1e4, &[]), None);
    }
}
