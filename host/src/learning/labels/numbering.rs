//! The numbers of the classes that labels name.
//!
//! Whole numbers that lie close to each other are looked up in a table that has an entry for each number between the least and
//! the greatest. Mostly a sample has a label of every class: then all labels are read once, at the speed of memory. Others, and
//! text, are looked up by hashes of them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::fast::FixedState;

use super::error::LabelError;
use super::label::Label;
use crate::learning::codes::Codes;
use crate::parallel;

/// Labels that one task numbers.
const CHUNK: usize = 1 << 16;
/// Labels whose classes are looked for before all are read.
const SAMPLE: usize = 1 << 10;
/// Entries of a table: as many labels as a task numbers, so that to make one takes no longer.
const LARGEST: u64 = CHUNK as u64;
/// Classes that a byte numbers.
const OF_A_BYTE: usize = 1 << 8;

impl Codes<'static> {
    /// The different ones of `labels` in ascending order, and which of them each label is: NumPy's
    /// `unique(labels, return_inverse=True)`.
    ///
    /// -0 and 0 are one label.
    ///
    /// ```
    /// use warpfuse::learning::Codes;
    /// let (classes, codes) = Codes::of(&[7_i64, -1, 7, 30])?;
    /// assert_eq!((classes, codes.to_vec()), (vec![-1, 7, 30], vec![1, 0, 1, 2]));
    /// # Ok::<(), warpfuse::learning::LabelError>(())
    /// ```
    ///
    /// # Errors
    /// [`LabelError::NotFinite`] and [`LabelError::Continuous`] for floats that are no labels, [`LabelError::TooMany`] for more
    /// classes than a `u32` numbers.
    pub fn of<T: Label>(labels: &[T]) -> Result<(Vec<T>, Self), LabelError> {
        if let Some((keys, codes)) = by_table(labels) {
            return Ok((keys.into_iter().map(T::of_key).collect(), codes));
        }
        check_whole(labels)?;
        let (ranks, codes) = Codes::of_each(labels.len(), |row| labels[row].rank())?;
        Ok((ranks.into_iter().map(T::of_rank).collect(), codes))
    }

    /// [`Codes::of`] of labels of any type that is ordered, such as text: `label` is called with numbers below `rows`, several
    /// times with each.
    ///
    /// ```
    /// use warpfuse::learning::Codes;
    /// let labels = ["ham", "spam", "ham"];
    /// let (classes, codes) = Codes::of_each(labels.len(), |row| labels[row])?;
    /// assert_eq!((classes, codes.to_vec()), (vec!["ham", "spam"], vec![0, 1, 0]));
    /// # Ok::<(), warpfuse::learning::LabelError>(())
    /// ```
    ///
    /// # Errors
    /// [`LabelError::TooMany`] for more classes than a `u32` numbers.
    pub fn of_each<D: Copy + Ord + Hash + Send + Sync>(
        rows: usize,
        label: impl Fn(usize) -> D + Sync,
    ) -> Result<(Vec<D>, Self), LabelError> {
        let classes = different((0..rows).step_by(stride(rows)).map(&label));
        if let Some(codes) = by_hash(&classes, rows, &label) {
            return Ok((classes, codes));
        }
        let of_part = |part: usize| {
            let end = rows.min((part + 1) * CHUNK);
            different((part * CHUNK..end).map(&label))
        };
        let parts = parallel::map(rows.div_ceil(CHUNK), of_part);
        let mut classes: Vec<D> = parts.into_iter().flatten().collect();
        classes.sort_unstable();
        classes.dedup();
        if u32::try_from(classes.len()).is_err() {
            let found = classes.len();
            return Err(LabelError::TooMany { found });
        }
        let codes = by_hash(&classes, rows, &label);
        Ok((classes, codes.expect("each label is among them")))
    }
}

/// How far the labels of a sample are from each other; all of few labels are in it.
fn stride(rows: usize) -> usize {
    if rows <= CHUNK {
        1
    } else {
        (rows / SAMPLE) | 1
    }
}

/// Labels are finite, and whole, as scikit-learn tells them from the targets of a regression.
fn check_whole<T: Label>(labels: &[T]) -> Result<(), LabelError> {
    let wide = |label: &T| label.wide().unwrap_or(0.0);
    if let Some(row) = parallel::position(labels, |label| !wide(label).is_finite()) {
        let value = wide(&labels[row]);
        return Err(LabelError::NotFinite { row, value });
    }
    match parallel::position(labels, |label| wide(label).fract() != 0.0) {
        Some(row) => Err(LabelError::Continuous {
            row,
            value: wide(&labels[row]),
        }),
        None => Ok(()),
    }
}

/// The classes of whole numbers as keys, and the codes; `None` where labels are not whole or far apart.
fn by_table<T: Label>(labels: &[T]) -> Option<(Vec<u64>, Codes<'static>)> {
    let sample: Vec<T> = labels
        .iter()
        .step_by(stride(labels.len()))
        .copied()
        .collect();
    let table = Table::of(&sample)?;
    if let Some(codes) = table.codes(labels) {
        return Some((table.keys(), codes));
    }
    let table = Table::of(labels)?;
    let codes = table.codes(labels)?;
    Some((table.keys(), codes))
}

/// The code of each number from the least label on.
struct Table {
    least: u64,
    /// Behind the entry of the greatest label there is one of what is no class.
    entries: Vec<u32>,
    classes: usize,
}

/// The entry of what is no class.
const NONE: u32 = u32::MAX;

impl Table {
    /// Of the classes of these labels, each of which has to be whole.
    fn of<T: Label>(labels: &[T]) -> Option<Self> {
        let part = |number| parallel::chunk(labels, CHUNK, number);
        let parts = labels.len().div_ceil(CHUNK);
        let ends = parallel::map(parts, |number| ends(part(number)));
        let of_both = |a: Option<(u64, u64)>, b: Option<(u64, u64)>| {
            let ((least, most), (low, high)) = (a?, b?);
            Some((least.min(low), most.max(high)))
        };
        let (least, most) = ends.into_iter().reduce(of_both)??;
        if most - least >= LARGEST {
            return None;
        }
        let width = (most - least) as usize + 1;
        let seen = parallel::map(parts, |number| {
            let mut seen = vec![false; width];
            for label in part(number) {
                seen[(label.key().0 - least) as usize] = true;
            }
            seen
        });
        let mut classes = 0;
        let entry = |is_there: bool| {
            classes += u32::from(is_there);
            if is_there { classes - 1 } else { NONE }
        };
        let mut entries: Vec<u32> = in_any(&seen, width).into_iter().map(entry).collect();
        entries.push(NONE);
        Some(Table {
            least,
            entries,
            classes: classes as usize,
        })
    }

    /// The keys of the classes.
    fn keys(&self) -> Vec<u64> {
        let numbered = self.entries.iter().enumerate();
        let there = numbered.filter(|(_, entry)| **entry != NONE);
        there.map(|(at, _)| self.least + at as u64).collect()
    }

    /// The code of each label, where all are of a class.
    fn codes<T: Label>(&self, labels: &[T]) -> Option<Codes<'static>> {
        let rows = labels.len();
        if self.entries.len() <= OF_A_BYTE {
            return numbered(rows, |rows, codes| self.near(&labels[rows], codes)).map(bytes);
        }
        let entries = |rows: Range<usize>| labels[rows].iter().map(|label| self.entry(*label));
        if self.classes <= OF_A_BYTE {
            let narrow = |entry| entry as u8;
            return numbered(rows, |rows, codes| written(entries(rows), codes, narrow)).map(bytes);
        }
        numbered(rows, |rows, codes| {
            written(entries(rows), codes, |entry| entry)
        })
        .map(words)
    }

    fn entry<T: Label>(&self, label: T) -> u32 {
        let (key, is_whole) = label.key();
        let last = self.entries.len() - 1;
        let offset = key.wrapping_sub(self.least).min(last as u64);
        if is_whole {
            self.entries[offset as usize]
        } else {
            NONE
        }
    }

    /// Writes the codes of labels between which there are fewer than 256 numbers, by loops that vectorise: offsets fit a byte, and
    /// are codes already where each number is a class. Whether each label is of a class.
    fn near<T: Label>(&self, labels: &[T], codes: &mut [u8]) -> bool {
        let mut of_offset = [u8::MAX; OF_A_BYTE];
        for (of_offset, entry) in of_offset.iter_mut().zip(&self.entries) {
            *of_offset = *entry as u8;
        }
        let has_gaps = self.classes + 1 < self.entries.len();
        let pairs = codes.chunks_mut(SAMPLE).zip(labels.chunks(SAMPLE));
        pairs.fold(true, |all, (codes, labels)| {
            let (mut bits, mut whole) = (0, true);
            for (code, label) in codes.iter_mut().zip(labels) {
                let (key, is_whole) = label.key();
                let offset = key.wrapping_sub(self.least);
                *code = offset as u8;
                bits |= offset;
                whole &= is_whole;
            }
            if has_gaps {
                codes
                    .iter_mut()
                    .for_each(|code| *code = of_offset[usize::from(*code)]);
            }
            // There are at most 255 classes: a byte is left for none.
            let most = codes.iter().fold(0, |most, code| most.max(*code));
            all & whole & (bits < OF_A_BYTE as u64) & (usize::from(most) < self.classes)
        })
    }
}

/// What any of these lists says of each of `width` numbers, list after list, as they lie in memory: labels of 10⁴ groups whose rows
/// are in order are in one list each.
fn in_any(lists: &[Vec<bool>], width: usize) -> Vec<bool> {
    let mut found = vec![false; width];
    for list in lists {
        let both = found.iter_mut().zip(list);
        both.for_each(|(found, there)| *found |= *there);
    }
    found
}

/// The least and the greatest key; `None` where a label is not whole.
fn ends<T: Label>(labels: &[T]) -> Option<(u64, u64)> {
    let (mut least, mut most, mut whole) = (u64::MAX, 0, true);
    for label in labels {
        let (key, is_whole) = label.key();
        (least, most) = (least.min(key), most.max(key));
        whole &= is_whole;
    }
    whole.then_some((least, most))
}

/// Codes of this many rows, which `number` writes for the rows of a part; `None` where it says that one has a label of no class.
fn numbered<C: Clone + Default + Send>(
    rows: usize,
    number: impl Fn(Range<usize>, &mut [C]) -> bool + Sync,
) -> Option<Vec<C>> {
    let mut codes = vec![C::default(); rows];
    let fails = AtomicBool::new(false);
    parallel::for_each_item(codes.chunks_mut(CHUNK), |part, codes| {
        let first = part * CHUNK;
        if !fails.load(Ordering::Relaxed) && !number(first..first + codes.len(), codes) {
            fails.store(true, Ordering::Relaxed);
        }
    });
    (!fails.into_inner()).then_some(codes)
}

/// Each of some labels once, in ascending order.
fn different<D: Copy + Ord + Hash>(labels: impl Iterator<Item = D>) -> Vec<D> {
    let mut seen: HashSet<D, FixedState> = HashSet::default();
    seen.extend(labels);
    let mut seen: Vec<D> = seen.into_iter().collect();
    seen.sort_unstable();
    seen
}

/// The code of each label, where all are of one of these classes.
fn by_hash<D: Copy + Ord + Hash + Send + Sync>(
    classes: &[D],
    rows: usize,
    label: &(impl Fn(usize) -> D + Sync),
) -> Option<Codes<'static>> {
    let codes = classes.iter().copied().zip(0_u32..);
    let codes: HashMap<D, u32, FixedState> = codes.collect();
    let none = || NONE;
    let entry = |row: usize| codes.get(&label(row)).copied().unwrap_or_else(none);
    if classes.len() <= OF_A_BYTE {
        return numbered(rows, |rows, codes| {
            written(rows.map(entry), codes, |entry| entry as u8)
        })
        .map(bytes);
    }
    numbered(rows, |rows, codes| {
        written(rows.map(entry), codes, |entry| entry)
    })
    .map(words)
}

/// Writes codes; whether none is of no class.
fn written<C>(
    entries: impl Iterator<Item = u32>,
    codes: &mut [C],
    narrow: impl Fn(u32) -> C,
) -> bool {
    codes
        .iter_mut()
        .zip(entries)
        .fold(true, |all, (code, entry)| {
            *code = narrow(entry);
            all & (entry != NONE)
        })
}

fn bytes(codes: Vec<u8>) -> Codes<'static> {
    Codes::Bytes(Cow::Owned(codes))
}

fn words(codes: Vec<u32>) -> Codes<'static> {
    Codes::Words(Cow::Owned(codes))
}
