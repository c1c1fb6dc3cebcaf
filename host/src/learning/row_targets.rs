//! What the rows of a fit are to be predicted as: read in the precision of X where it lies, whatever it was given in.

use std::borrow::Cow;
use std::sync::Arc;

use super::Codes;
use crate::device::{Buffer, Device, DeviceError};
use crate::matrix::Element;
use crate::ops::Number;
use crate::parallel;

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

    /// All of them, on a device.
    pub(super) fn upload(&self, device: &Device) -> Result<Buffer<T>, DeviceError> {
        match self {
            RowTargets::Given(targets) => device.upload(targets),
            _ => device.upload_with(self.len(), |range, to: &mut [T]| {
                let rows = to.iter_mut().zip(range);
                rows.for_each(|(to, row)| *to = self.at(row));
            }),
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

    /// A number that f32 does not hold is found as what it becomes.
    #[test]
    fn what_overflows_is_not_finite() {
        let wide: RowTargets<'_, f32> = RowTargets::Wide(&[1.0, 1e300]);
        assert_eq!(wide.position(|b| !b.is_finite()), Some(1));
    }
}
