//! The numbers of classes that labels have, one for each row.

use std::borrow::Cow;
use std::ops::Range;

use crate::parallel;

/// Rows that one task looks at.
const CHUNK: usize = 1 << 16;

/// The number of each row's class, from 0 on: a byte each where that is enough, which is an eighth of what labels of 64 bits
/// take.
///
/// ```
/// use warpfuse::learning::Codes;
/// let codes = Codes::from(&[0_u8, 2, 1][..]);
/// assert_eq!((codes.len(), codes.at(1), codes.most()), (3, 2, Some(2)));
/// ```
///
/// [`Codes::of`] numbers the classes of labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Codes<'a> {
    /// Of 256 classes at most.
    Bytes(Cow<'a, [u8]>),
    /// Of any number of classes.
    Words(Cow<'a, [u32]>),
}

/// Runs the same code on numbers of either width.
macro_rules! either {
    ($codes:expr, $name:ident => $body:expr) => {
        match $codes {
            Codes::Bytes($name) => $body,
            Codes::Words($name) => $body,
        }
    };
}

impl Codes<'_> {
    /// Rows.
    pub fn len(&self) -> usize {
        either!(self, codes => codes.len())
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of a row's class.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    #[expect(
        clippy::useless_conversion,
        reason = "one of the two widths is that of the result"
    )]
    pub fn at(&self, row: usize) -> u32 {
        either!(self, codes => codes[row].into())
    }

    /// A number for each row, in 32 bits.
    #[expect(
        clippy::useless_conversion,
        reason = "one of the two widths is that of the result"
    )]
    pub fn to_vec(&self) -> Vec<u32> {
        either!(self, codes => parallel::convert(codes, |code| u32::from(*code)))
    }

    /// The greatest number; `None` without rows.
    #[expect(
        clippy::useless_conversion,
        reason = "one of the two widths is that of the result"
    )]
    pub fn most(&self) -> Option<u32> {
        either!(self, codes => {
            // A loop that vectorises.
            let of_part = |part| parallel::chunk(codes, CHUNK, part).iter().fold(0, |a, b| a.max(*b));
            let parts = parallel::map(codes.len().div_ceil(CHUNK), of_part);
            parts.into_iter().max().map(u32::from)
        })
    }

    /// Calls `each` with the rows of a range and the numbers of their classes.
    pub(super) fn each(&self, rows: Range<usize>, mut each: impl FnMut(usize, usize)) {
        either!(self, codes => {
            let of_rows = rows.clone().zip(&codes[rows]);
            of_rows.for_each(|(row, code)| each(row, *code as usize));
        });
    }

    /// The first row whose number is such a one.
    #[expect(
        clippy::useless_conversion,
        reason = "one of the two widths is that of the result"
    )]
    pub(super) fn position(&self, holds: impl Fn(u32) -> bool + Sync) -> Option<usize> {
        either!(self, codes => parallel::position(codes, |code| holds(u32::from(*code))))
    }

    /// What each number stands for.
    pub(super) fn meaning<U: Copy + Send + Sync + Default>(&self, of_class: &[U]) -> Vec<U> {
        either!(self, codes => parallel::convert(codes, |code| of_class[*code as usize]))
    }
}

impl<'a> From<&'a [u8]> for Codes<'a> {
    fn from(codes: &'a [u8]) -> Self {
        Codes::Bytes(Cow::Borrowed(codes))
    }
}

impl<'a> From<&'a [u32]> for Codes<'a> {
    fn from(codes: &'a [u32]) -> Self {
        Codes::Words(Cow::Borrowed(codes))
    }
}

impl From<Vec<u32>> for Codes<'_> {
    fn from(codes: Vec<u32>) -> Self {
        Codes::Words(Cow::Owned(codes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_widths_say_the_same() {
        let (bytes, words) = ([0_u8, 3, 1, 3], [0_u32, 3, 1, 3]);
        for codes in [Codes::from(&bytes[..]), Codes::from(&words[..])] {
            assert_eq!((codes.len(), codes.at(1), codes.at(2)), (4, 3, 1));
            assert_eq!(codes.position(|code| code > 2), Some(1));
            assert_eq!(codes.position(|code| code > 3), None);
            assert_eq!((codes.most(), codes.to_vec()), (Some(3), words.to_vec()));
            assert_eq!(codes.meaning(&[1.0, 2.0, 3.0, 4.0]), [1.0, 4.0, 2.0, 4.0]);
        }
        let none = Codes::from(Vec::new());
        assert!(none.is_empty() && none.most().is_none());
    }
}
