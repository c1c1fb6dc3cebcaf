//! Rows in the order of their groups.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::learning::problem::Labelled;
use crate::learning::{Classes, Codes, LabelError, LabelSlice};
use crate::parallel;

/// Rows that one task counts, at least.
const BLOCK: usize = 1 << 16;

/// Groups, and the rows of each.
#[derive(Debug)]
pub(super) struct Groups {
    pub(super) labels: Classes,
    pub(super) order: GroupOrder,
}

impl Groups {
    /// That of each row. Where rows are in the order of their groups already, no number is made for each: 10⁷ of them took 5 ms of a fit,
    /// and 3 to be let go.
    pub(super) fn new<'l>(labels: impl Into<LabelSlice<'l>>) -> Result<Self, LabelError> {
        let labels = labels.into();
        match labels.runs() {
            Some(runs) => Ok(Groups {
                labels: runs.classes,
                order: GroupOrder {
                    starts: runs.starts,
                    rows: None,
                },
            }),
            None => Labelled::new(labels).map(Groups::from),
        }
    }
}

impl From<Labelled<'_>> for Groups {
    fn from(Labelled { classes, codes }: Labelled<'_>) -> Self {
        Groups {
            order: GroupOrder::new(&codes, classes.len()),
            labels: classes,
        }
    }
}

/// Rows in the order of their groups, those of a group as they came.
#[derive(Debug)]
pub(super) struct GroupOrder {
    /// Where each group begins, and where the last ends.
    starts: Vec<usize>,
    /// The row at each place; none where rows are in order as they are.
    rows: Option<Places>,
}

/// A row for each place, in pieces of [`BLOCK`] places, which threads have made. All have written what they have: nobody does any
/// more.
#[derive(Debug)]
struct Places(Vec<Vec<AtomicUsize>>);

impl Places {
    fn new(len: usize) -> Places {
        let piece = |number: usize| {
            let places = number * BLOCK..len.min((number + 1) * BLOCK);
            places.map(|_| AtomicUsize::new(0)).collect()
        };
        Places(parallel::map(len.div_ceil(BLOCK), piece))
    }

    #[inline]
    fn at(&self, place: usize) -> &AtomicUsize {
        &self.0[place / BLOCK][place % BLOCK]
    }
}

impl GroupOrder {
    /// Of the number of each row's group, which is below `groups`.
    pub(super) fn new(codes: &Codes<'_>, groups: usize) -> GroupOrder {
        if let Some(starts) = ascending(codes, groups) {
            return GroupOrder { starts, rows: None };
        }
        // Not more counters than rows.
        let block = BLOCK.max(groups);
        let of_block = |number: usize| number * block..codes.len().min((number + 1) * block);
        let mut counts = parallel::map(codes.len().div_ceil(block), |number| {
            let mut counts = vec![0_usize; groups];
            codes.each(of_block(number), |_, group| counts[group] += 1);
            counts
        });
        let starts = places(&mut counts, groups);
        let rows = Some(scattered(codes, counts, of_block));
        GroupOrder { starts, rows }
    }

    /// Groups.
    pub(super) fn groups(&self) -> usize {
        self.starts.len() - 1
    }

    /// Rows of all groups.
    pub(super) fn len(&self) -> usize {
        self.starts[self.groups()]
    }

    /// The places of a group.
    pub(super) fn places(&self, group: usize) -> Range<usize> {
        self.starts[group]..self.starts[group + 1]
    }

    /// The row at a place.
    pub(super) fn row(&self, place: usize) -> usize {
        self.rows
            .as_ref()
            .map_or(place, |rows| rows.at(place).load(Ordering::Relaxed))
    }

    /// Whether rows are in order as they are.
    pub(super) fn is_given(&self) -> bool {
        self.rows.is_none()
    }
}

/// Where groups begin, if rows are in the order of their groups already.
fn ascending(codes: &Codes<'_>, groups: usize) -> Option<Vec<usize>> {
    let blocks = codes.len().div_ceil(BLOCK);
    let of_block = |number: usize| number * BLOCK..codes.len().min((number + 1) * BLOCK);
    // Where another group begins than that of the row before, in each block.
    let begun = |number: usize| {
        let rows = of_block(number);
        let (mut begun, mut ascends) = (Vec::new(), true);
        let mut last = rows.start.checked_sub(1).map(|row| codes.at(row) as usize);
        codes.each(rows, |row, group| {
            if last != Some(group) {
                ascends &= last <= Some(group);
                begun.push((group, row));
                last = Some(group);
            }
        });
        ascends.then_some(begun)
    };
    // Rows in no order are so mostly from the beginning on.
    if blocks > 0 {
        begun(0)?;
    }
    let begun: Option<Vec<_>> = parallel::map(blocks, begun).into_iter().collect();
    let mut starts = Vec::with_capacity(groups + 1);
    for (group, row) in begun?.into_iter().flatten() {
        // Groups before it without rows begin there, too.
        starts.resize(group + 1, row);
    }
    starts.resize(groups + 1, codes.len());
    Some(starts)
}

/// Makes the place of each block's first row of each group of its counts; where groups begin.
fn places(counts: &mut [Vec<usize>], groups: usize) -> Vec<usize> {
    let (mut starts, mut next) = (vec![0; groups + 1], 0);
    for group in 0..groups {
        starts[group] = next;
        for counts in counts.iter_mut() {
            next += std::mem::replace(&mut counts[group], next);
        }
    }
    starts[groups] = next;
    starts
}

/// The row at each place.
fn scattered(
    codes: &Codes<'_>,
    places: Vec<Vec<usize>>,
    of_block: impl Fn(usize) -> Range<usize> + Sync,
) -> Places {
    let rows = Places::new(codes.len());
    parallel::for_each_item(places, |number, mut places| {
        codes.each(of_block(number), |row, group| {
            // Every place is written once: which thread does is of no consequence.
            rows.at(places[group]).store(row, Ordering::Relaxed);
            places[group] += 1;
        });
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(codes: Vec<u32>, groups: usize) -> GroupOrder {
        GroupOrder::new(&Codes::from(codes), groups)
    }

    #[test]
    fn rows_of_a_group_are_together_as_they_came() {
        let order = order(vec![2, 0, 2, 1, 0], 4);
        let rows: Vec<usize> = (0..5).map(|place| order.row(place)).collect();
        assert_eq!(rows, [1, 4, 3, 0, 2]);
        let places: Vec<_> = (0..4).map(|group| order.places(group)).collect();
        assert_eq!(places, [0..2, 2..3, 3..5, 5..5]);
        assert!(!order.is_given() && order.len() == 5);
    }

    #[test]
    fn many_rows_are_sorted_by_all_threads() {
        let rows = 3 * BLOCK + 11;
        let group = |row: usize| (row.wrapping_mul(0x9e37_79b9) >> 7) as u32 % 1_000;
        let order = order((0..rows).map(group).collect(), 1_000);
        let found: Vec<usize> = (0..rows).map(|place| order.row(place)).collect();
        let mut expected: Vec<usize> = (0..rows).collect();
        expected.sort_by_key(|row| group(*row));
        assert_eq!(found, expected);
    }

    #[test]
    fn rows_in_order_stay_where_they_are() {
        let rows = 2 * BLOCK + 5;
        let sorted: Vec<u32> = (0..rows).map(|row| (row / 100) as u32).collect();
        let groups = rows.div_ceil(100);
        assert!(order(sorted.clone(), groups).is_given());
        // Blocks that ascend, but not from one to the next.
        let mut turned = sorted;
        turned.rotate_left(BLOCK);
        assert!(!order(turned, groups).is_given());
        assert!(order(Vec::new(), 0).is_given());
    }
}
