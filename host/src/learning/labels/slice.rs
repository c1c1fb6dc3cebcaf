//! Labels of any type, read where they lie.

use super::error::LabelError;
use super::label::Label;
use super::{Classes, Labels};
use crate::learning::codes::Codes;
use crate::parallel;

/// One label per sample, lent: numbers of any type, truth values, text. Fits take whatever turns into it.
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::LogisticRegression;
/// use warpfuse::matrix::Features;
///
/// let (device, estimator) = (Device::cpu(), LogisticRegression::params());
/// let x = || Features::Dense(array![[0.0], [1.0], [2.0], [3.0]]);
/// let of_numbers = estimator.fit(&device, x(), &[-1_i64, -1, 1, 1][..])?;
/// let of_names = estimator.fit(&device, x(), &["no", "no", "yes", "yes"][..])?;
/// assert_eq!(of_numbers.coef(), of_names.coef());
/// assert_eq!(of_names.classes().label(1), "yes");
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the variants are called as the types are")]
pub enum LabelSlice<'a> {
    F64(&'a [f64]),
    F32(&'a [f32]),
    I64(&'a [i64]),
    I32(&'a [i32]),
    I16(&'a [i16]),
    I8(&'a [i8]),
    U64(&'a [u64]),
    U32(&'a [u32]),
    U16(&'a [u16]),
    U8(&'a [u8]),
    Bool(&'a [bool]),
    Text(&'a [String]),
    Names(&'a [&'a str]),
}

macro_rules! of_slices {
    ($($variant:ident: $type:ty),* $(,)?) => { $(
        impl<'a> From<&'a [$type]> for LabelSlice<'a> {
            fn from(labels: &'a [$type]) -> Self {
                LabelSlice::$variant(labels)
            }
        }
    )* };
}

of_slices! {
    F64: f64, F32: f32, I64: i64, I32: i32, I16: i16, I8: i8, U64: u64, U32: u32, U16: u16, U8: u8, Bool: bool,
    Text: String, Names: &'a str,
}

impl<'a> From<&'a Labels> for LabelSlice<'a> {
    fn from(labels: &'a Labels) -> Self {
        match labels {
            Labels::Numbers(labels) => LabelSlice::F64(labels),
            Labels::Text(labels) => LabelSlice::Text(labels),
        }
    }
}

/// Runs the same code on labels that are numbers, and other code on text.
macro_rules! by_kind {
    ($labels:expr, $numbers:ident => $of_numbers:expr, $text:ident => $of_text:expr) => {
        match $labels {
            LabelSlice::F64($numbers) => $of_numbers,
            LabelSlice::F32($numbers) => $of_numbers,
            LabelSlice::I64($numbers) => $of_numbers,
            LabelSlice::I32($numbers) => $of_numbers,
            LabelSlice::I16($numbers) => $of_numbers,
            LabelSlice::I8($numbers) => $of_numbers,
            LabelSlice::U64($numbers) => $of_numbers,
            LabelSlice::U32($numbers) => $of_numbers,
            LabelSlice::U16($numbers) => $of_numbers,
            LabelSlice::U8($numbers) => $of_numbers,
            LabelSlice::Bool($numbers) => $of_numbers,
            LabelSlice::Text($text) => $of_text,
            LabelSlice::Names($text) => $of_text,
        }
    };
}
pub(super) use by_kind;

impl LabelSlice<'_> {
    /// Samples.
    pub fn len(&self) -> usize {
        by_kind!(self, labels => labels.len(), labels => labels.len())
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The classes, and the number of each sample's.
    pub(super) fn encode(self) -> Result<(Classes, Codes<'static>), LabelError> {
        by_kind!(self, labels => numbers(labels), labels => text(labels))
    }

    /// The number of each sample's class.
    pub(super) fn codes(self, classes: &Classes) -> Result<Vec<u32>, LabelError> {
        by_kind!(self, labels => codes_of_numbers(labels, classes), labels => codes_of_text(labels, classes))
    }
}

fn codes_of_numbers<T: Label>(labels: &[T], classes: &Classes) -> Result<Vec<u32>, LabelError> {
    let Classes::Numbers(of) = classes else {
        return Err(kind("names", "numbers"));
    };
    let found = found(labels, |label| find_number(of, label.wide()));
    found.map_err(|row| unknown(classes, row, labels[row].to_string()))
}

fn codes_of_text<S: AsRef<str> + Sync>(
    labels: &[S],
    classes: &Classes,
) -> Result<Vec<u32>, LabelError> {
    let Classes::Text(of) = classes else {
        return Err(kind("numbers", "names"));
    };
    let found = found(labels, |label| {
        of.binary_search_by(|class| class.as_str().cmp(label.as_ref()))
            .ok()
    });
    found.map_err(|row| unknown(classes, row, format!("{:?}", labels[row].as_ref())))
}

fn unknown(known: &Classes, row: usize, label: String) -> LabelError {
    let known = known.to_string();
    LabelError::Unknown { row, label, known }
}

fn kind(expected: &'static str, found: &'static str) -> LabelError {
    LabelError::Kind { expected, found }
}

/// Classes with each of which a label is compared: which comes next cannot be predicted.
const FEW: usize = 8;

/// The place of a number among classes in ascending order.
fn find_number(classes: &[f64], label: Option<f64>) -> Option<usize> {
    let label = label?;
    if classes.len() > FEW {
        // Adding 0 makes -0 a 0.
        let order = |class: &f64| class.total_cmp(&(label + 0.0));
        return classes.binary_search_by(order).ok();
    }
    let all = classes.iter().enumerate();
    all.fold(None, |found, (at, class)| match *class == label {
        true => Some(at),
        false => found,
    })
}

/// The code of each label, or the first row for which `find` has none.
fn found<T: Sync>(
    labels: &[T],
    find: impl Fn(&T) -> Option<usize> + Sync,
) -> Result<Vec<u32>, usize> {
    // No code: the last of this many classes has the number before.
    const NONE: u32 = u32::MAX;
    let code = |label: &T| find(label).map_or(NONE, |code| code as u32);
    let codes: Vec<u32> = parallel::convert(labels, code);
    match parallel::position(&codes, |code| *code == NONE) {
        Some(row) => Err(row),
        None => Ok(codes),
    }
}

fn numbers<T: Label>(labels: &[T]) -> Result<(Classes, Codes<'static>), LabelError> {
    let (classes, codes) = Codes::of(labels)?;
    let wide = |class: T| {
        let value = || class.to_string();
        class
            .wide()
            .ok_or_else(|| LabelError::TooLong { value: value() })
    };
    let classes: Result<Vec<f64>, LabelError> = classes.into_iter().map(wide).collect();
    Ok((Classes::Numbers(classes?), codes))
}

fn text<S: AsRef<str> + Sync>(labels: &[S]) -> Result<(Classes, Codes<'static>), LabelError> {
    let (classes, codes) = Codes::of_each(labels.len(), |row| labels[row].as_ref())?;
    let names = classes.into_iter().map(str::to_owned).collect();
    Ok((Classes::Text(names), codes))
}
