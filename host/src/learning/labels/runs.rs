//! Labels in ascending order: rows of the same label lie together, and no number for each row is wanted to know which.

use super::label::Label;
use super::{Classes, LabelSlice};
use crate::learning::labels::slice::by_kind;
use crate::parallel;

/// Labels that one task looks at.
const CHUNK: usize = 1 << 16;

/// Classes, and the rows of each.
#[derive(Debug, PartialEq)]
pub(in crate::learning) struct Runs {
    pub(in crate::learning) classes: Classes,
    /// The first row of each class, and behind the last how many rows there are.
    pub(in crate::learning) starts: Vec<usize>,
}

impl LabelSlice<'_> {
    /// The classes with their rows, where labels are numbers and ascend; none for others, and for those that are no labels.
    pub(in crate::learning) fn runs(self) -> Option<Runs> {
        by_kind!(self, labels => of_numbers(labels), labels => of_text(labels))
    }
}

/// Text is compared no faster than it is numbered.
fn of_text<S>(_: &[S]) -> Option<Runs> {
    None
}

fn of_numbers<T: Label>(labels: &[T]) -> Option<Runs> {
    let parts = labels.len().div_ceil(CHUNK);
    // Labels in no order are so mostly from the beginning on.
    if parts > 1 {
        begun(labels, 0)?;
    }
    let begun = parallel::map(parts, |part| begun(labels, part));
    let (mut classes, mut starts) = (Vec::new(), Vec::new());
    for (row, key) in begun.into_iter().collect::<Option<Vec<_>>>()?.concat() {
        classes.push(T::of_key(key).wide()?);
        starts.push(row);
    }
    starts.push(labels.len());
    Some(Runs {
        classes: Classes::Numbers(classes),
        starts,
    })
}

/// The rows of a part whose label is another than that of the row before, and its key; none where labels descend.
fn begun<T: Label>(labels: &[T], part: usize) -> Option<Vec<(usize, u64)>> {
    let first = part * CHUNK;
    let before = first.checked_sub(1).map(|row| labels[row].key().0);
    let (mut begun, mut last) = (Vec::new(), before);
    for (label, row) in parallel::chunk(labels, CHUNK, part).iter().zip(first..) {
        let (key, is_whole) = label.key();
        if !is_whole {
            return None;
        }
        if last != Some(key) {
            if last > Some(key) {
                return None;
            }
            begun.push((row, key));
            last = Some(key);
        }
    }
    Some(begun)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What labels say that are numbered one by one.
    fn numbered<'l>(labels: impl Into<LabelSlice<'l>>) -> (Classes, Vec<usize>) {
        let (classes, codes) = Classes::encode(labels).expect("labels");
        let codes = codes.to_vec();
        let start = |class: usize| codes.partition_point(|code| (*code as usize) < class);
        let starts = (0..=classes.len()).map(start).collect();
        (classes, starts)
    }

    #[test]
    fn ascending_labels_are_in_runs_as_they_are_numbered() {
        let rows = 3 * CHUNK + 17;
        let of = |row: usize| (row / 100 * 3) as i64 - 1_000;
        let wide: Vec<i64> = (0..rows).map(of).collect();
        let narrow: Vec<f32> = wide.iter().map(|label| *label as f32).collect();
        let lists = [LabelSlice::from(&wide[..]), LabelSlice::from(&narrow[..])];
        for labels in lists {
            let found = labels.runs().expect("they ascend");
            assert_eq!((found.classes, found.starts), numbered(labels));
        }
        let none = LabelSlice::from(&[0_u8; 0][..]).runs().expect("no rows");
        assert_eq!(none.starts, [0]);
        let zeros = LabelSlice::from(&[-0.0_f64, 0.0, 2.0][..]).runs();
        assert_eq!(zeros.expect("they ascend").starts, [0, 2, 3]);
    }

    #[test]
    fn others_are_numbered_one_by_one() {
        let mut rows: Vec<u32> = (0..2 * CHUNK as u32).collect();
        // In order within each part, but not from one to the next.
        rows.rotate_left(CHUNK);
        assert_eq!(LabelSlice::from(&rows[..]).runs(), None);
        assert_eq!(LabelSlice::from(&[1_i8, 0][..]).runs(), None);
        for no_label in [0.5, f64::NAN, f64::INFINITY] {
            assert_eq!(LabelSlice::from(&[0.0, no_label][..]).runs(), None);
        }
        // f64 does not hold it.
        assert_eq!(LabelSlice::from(&[(1_i64 << 53) + 1][..]).runs(), None);
        assert_eq!(LabelSlice::from(&["a", "b"][..]).runs(), None);
    }
}
