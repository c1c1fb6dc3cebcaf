//! What the rows of a fit are to be predicted as: read in the precision of X where it lies, whatever it was given in.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::Codes;
use super::sample_weights::SampleWeights;
use crate::device::{Buffer, Device, DeviceError};
use crate::matrix::Element;
use crate::ops::Number;
use crate::parallel;

/// Rows whose weights one task adds; blocks are added in order, so that the number of threads does not matter.
const BLOCK: usize = 1 << 16;
/// Classes whose weights are added together.
const MOST_CLASSES: usize = 256;

/// Targets of the rows of a fit, one for each. Nothing is copied before a device gets them.
#[derive(Debug, Clone)]
pub(super) enum RowTargets<'a, T> {
    /// In the precision of X.
    Given(&'a [T]),
    /// In f64: each is rounded when it is read.
    Wide(&'a [f64]),
    /// Of classes.
    Coded {
        /// The number of each row's class, below the number of `targets`.
        codes: Arc<Codes<'a>>,
        /// The target of each class.
        targets: Vec<T>,
    },
}

impl<'a, T> From<&'a [T]> for RowTargets<'a, T> {
    fn from(targets: &'a [T]) -> Self {
        RowTargets::Given(targets)
    }
}

impl<T: Number> RowTargets<'_, T> {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        match self {
            RowTargets::Given(targets) => targets.len(),
            RowTargets::Wide(targets) => targets.len(),
            RowTargets::Coded { codes, .. } => codes.len(),
        }
    }

    /// That of a row.
    #[inline]
    pub(super) fn at(&self, row: usize) -> T {
        match self {
            RowTargets::Given(targets) => targets[row],
            RowTargets::Wide(targets) => <T as Element>::from_f64(targets[row]),
            RowTargets::Coded { codes, targets } => targets[codes.at(row) as usize],
        }
    }

    /// The first row whose target is such a one.
    pub(super) fn position(&self, holds: impl Fn(T) -> bool + Sync) -> Option<usize> {
        match self {
            RowTargets::Given(targets) => parallel::position(targets, |b| holds(*b)),
            RowTargets::Wide(targets) => {
                parallel::position(targets, |b| holds(<T as Element>::from_f64(*b)))
            }
            RowTargets::Coded { codes, targets } => {
                codes.position(|code| holds(targets[code as usize]))
            }
        }
    }

    /// All of them, for a solve on the host.
    pub(super) fn whole(&self) -> Cow<'_, [T]> {
        match self {
            RowTargets::Given(targets) => Cow::Borrowed(targets),
            RowTargets::Wide(targets) => {
                let narrow = |b: &f64| <T as Element>::from_f64(*b);
                Cow::Owned(parallel::convert(targets, narrow))
            }
            RowTargets::Coded { codes, targets } => Cow::Owned(codes.meaning(targets)),
        }
    }

    /// The target of each class and what its rows weigh together; none where targets are not of classes, or of more than
    /// [`MOST_CLASSES`].
    pub(super) fn weighed(&self, weights: &SampleWeights) -> Option<Vec<(f64, f64)>> {
        let RowTargets::Coded { codes, targets } = self else {
            return None;
        };
        let classes = targets.len();
        let of_block = |number: usize| {
            let (start, mut sums) = (number * BLOCK, vec![0.0; classes]);
            let rows = start..codes.len().min(start + BLOCK);
            match weights {
                // Counts, which f64 adds without rounding.
                SampleWeights::Even { .. } => codes.each(rows, |_, code| sums[code] += 1.0),
                SampleWeights::Each(of) => codes.each(rows, |row, code| sums[code] += of[row]),
            }
            sums
        };
        if classes > MOST_CLASSES {
            return None;
        }
        let mut all = vec![0.0; classes];
        for sums in parallel::map(codes.len().div_ceil(BLOCK), of_block) {
            all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
        }
        let each = match weights {
            SampleWeights::Even { each, .. } => *each,
            SampleWeights::Each(_) => 1.0,
        };
        let targets = targets.iter().map(|target| Element::to_f64(*target));
        Some(targets.zip(all.iter().map(|sum| sum * each)).collect())
    }

    /// Writes those of some rows.
    pub(super) fn fill(&self, rows: Range<usize>, to: &mut [T]) {
        match self {
            RowTargets::Given(targets) => to.copy_from_slice(&targets[rows]),
            RowTargets::Wide(targets) => {
                let pairs = to.iter_mut().zip(&targets[rows]);
                pairs.for_each(|(to, target)| *to = <T as Element>::from_f64(*target));
            }
            RowTargets::Coded { codes, targets } => {
                let start = rows.start;
                codes.each(rows, |row, code| to[row - start] = targets[code]);
            }
        }
    }

    /// All of them, on a device.
    pub(super) fn upload(&self, device: &Device) -> Result<Buffer<T>, DeviceError> {
        match self {
            RowTargets::Given(targets) => device.upload(targets),
            _ => device.upload_with(self.len(), |rows, to: &mut [T]| self.fill(rows, to)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_say_the_same_however_they_are_read() {
        let expected = [2.0_f32, -1.0, 2.0, 0.1];
        let wide = [2.0, -1.0, 2.0, 0.1];
        let coded = RowTargets::Coded {
            codes: Arc::new(Codes::from(&[0_u8, 1, 0, 2][..])),
            targets: vec![2.0, -1.0, 0.1],
        };
        for targets in [
            RowTargets::from(&expected[..]),
            RowTargets::Wide(&wide),
            coded,
        ] {
            assert_eq!(targets.len(), 4);
            assert_eq!([0, 1, 2, 3].map(|row| targets.at(row)), expected);
            assert_eq!(*targets.whole(), expected);
            assert_eq!(targets.position(|b| b < 0.0), Some(1));
            assert_eq!(targets.position(|b| b == 3.0), None);
            let there = targets.upload(&Device::cpu()).expect("the CPU");
            assert_eq!(there.to_vec().expect("the CPU"), expected);
        }
    }

    #[test]
    fn classes_weigh_what_their_rows_weigh() {
        let rows = 2 * BLOCK + 3;
        let codes: Vec<u32> = (0..rows as u32).map(|row| row % 7 % 3).collect();
        let counted = |class: u32| codes.iter().filter(|code| **code == class).count() as f64;
        let targets = RowTargets::Coded {
            codes: Arc::new(Codes::from(&codes[..])),
            targets: vec![-1.0_f32, 1.0, 4.0],
        };
        let expected = |scale: f64| {
            let each = [(-1.0, 0), (1.0, 1), (4.0, 2)];
            Some(
                each.map(|(target, class)| (target, scale * counted(class)))
                    .to_vec(),
            )
        };
        let ones = SampleWeights::ones(rows);
        assert_eq!(targets.weighed(&ones), expected(1.0));
        let halves = SampleWeights::each(vec![0.5; rows]);
        assert_eq!(targets.weighed(&halves), expected(0.5));
        assert_eq!(RowTargets::from(&[1.0_f32][..]).weighed(&ones), None);
    }

    /// A number that f32 does not hold is found as what it becomes.
    #[test]
    fn what_overflows_is_not_finite() {
        let wide: RowTargets<'_, f32> = RowTargets::Wide(&[1.0, 1e300]);
        assert_eq!(wide.position(|b| !b.is_finite()), Some(1));
    }
}
