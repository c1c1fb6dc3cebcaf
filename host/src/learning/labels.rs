//! Class labels of any kind, and the classes that they name.
//!
//! A classifier works with classes 0..k. What they are called is kept: numbers as LIBSVM files and npy arrays
//! have them, text as CSV files do. Classes are sorted as scikit-learn's `LabelEncoder` sorts them: numbers by
//! size, text by code points.

use std::cmp::Ordering;

use crate::parallel;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One label per sample.
#[derive(Debug, Clone, PartialEq)]
pub enum Labels {
    /// Numbers, as LIBSVM files and npy arrays have them.
    Numbers(Vec<f64>),
    /// Names.
    Text(Vec<String>),
}

/// The classes of a classifier: their labels in ascending order, each once.
///
/// In JSON a list of numbers or of strings.
///
/// ```
/// use warpfuse::learning::{Classes, Labels};
/// let labels = Labels::Text(["ham", "spam", "ham"].map(String::from).to_vec());
/// let (classes, codes) = Classes::encode(&labels)?;
/// assert_eq!((classes.len(), codes), (2, vec![0, 1, 0]));
/// assert_eq!(classes.label(1), "spam");
/// # Ok::<(), warpfuse::learning::LabelError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Classes {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Names.
    Text(Vec<String>),
}

/// Why labels name no classes.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum LabelError {
    /// A label is infinite or NaN.
    #[error("expected labels that are finite, found {value} for sample {row} (counted from 0)")]
    NotFinite {
        /// Which sample.
        row: usize,
        /// Its label.
        value: f64,
    },
    /// Numbers that are no labels: those of a regression.
    #[error(
        "unknown label type: continuous; expected labels that are whole numbers, found {value} for sample {row} (counted from 0): train a regression, or name the classes"
    )]
    Continuous {
        /// Which sample.
        row: usize,
        /// Its label.
        value: f64,
    },
    /// More classes than a 32-bit number can count.
    #[error("expected at most {max} classes, found {found}", max = u32::MAX)]
    TooMany {
        /// Different labels.
        found: usize,
    },
    /// A label that was not among those that a model was trained on.
    #[error(
        "expected one of the labels {known}, found {label} for sample {row} (counted from 0); a model knows the classes that it was trained on"
    )]
    Unknown {
        /// Which sample.
        row: usize,
        /// Its label.
        label: String,
        /// The classes, shortened.
        known: String,
    },
    /// Numbers where a model has names, or the reverse.
    #[error("expected labels that are {expected}, as in training, found {found}")]
    Kind {
        /// What the classes are.
        expected: &'static str,
        /// What the labels are.
        found: &'static str,
    },
}

/// Classes that an error lists.
const LISTED: usize = 10;

impl Labels {
    /// Labels from a column of text: numbers if all of them are, else names.
    ///
    /// ```
    /// use warpfuse::learning::Labels;
    /// assert_eq!(Labels::of_text(vec!["1".into(), "-1".into()]), Labels::Numbers(vec![1.0, -1.0]));
    /// ```
    pub fn of_text(texts: Vec<String>) -> Labels {
        let number = |text: &String| text.parse::<f64>().ok().filter(|number| number.is_finite());
        match texts.iter().map(number).collect() {
            Some(numbers) => Labels::Numbers(numbers),
            None => Labels::Text(texts),
        }
    }

    /// Samples.
    pub fn len(&self) -> usize {
        match self {
            Labels::Numbers(labels) => labels.len(),
            Labels::Text(labels) => labels.len(),
        }
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Different labels, counted as far as `most`.
    pub(super) fn distinct(&self, most: usize) -> usize {
        fn count<'a, T: PartialEq + Sync>(labels: &'a [T], most: usize) -> usize {
            let part = |number| parallel::chunk(labels, CHUNK, number);
            let of_part = |number| seen(part(number).iter(), most);
            let parts: Vec<Option<Vec<&'a T>>> =
                parallel::map(labels.len().div_ceil(CHUNK), of_part);
            let of_both =
                |a: Vec<&'a T>, b: Option<Vec<&'a T>>| seen(a.into_iter().chain(b?), most);
            let all = parts.into_iter().try_fold(Vec::new(), of_both);
            all.map_or(most, |seen| seen.len())
        }
        match self {
            Labels::Numbers(labels) => count(labels, most),
            Labels::Text(labels) => count(labels, most),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Labels::Numbers(_) => "numbers",
            Labels::Text(_) => "text",
        }
    }
}

impl Classes {
    /// The classes that `labels` name, and the class of each sample.
    ///
    /// -0 and 0 are one label.
    ///
    /// # Errors
    /// [`LabelError`] for numbers that are not finite, or not whole.
    pub fn encode(labels: &Labels) -> Result<(Self, Vec<u32>), LabelError> {
        let classes = match labels {
            Labels::Numbers(labels) => {
                check_whole(labels)?;
                Classes::Numbers(distinct(labels, |label| label + 0.0, f64::total_cmp))
            }
            Labels::Text(labels) => {
                let names = distinct(labels, |label| label, |a, b| a.cmp(b));
                Classes::Text(names.into_iter().cloned().collect())
            }
        };
        if u32::try_from(classes.len()).is_err() {
            let found = classes.len();
            return Err(LabelError::TooMany { found });
        }
        let codes = classes.codes(labels)?;
        Ok((classes, codes))
    }

    /// The class of each sample.
    ///
    /// # Errors
    /// [`LabelError::Unknown`] for a label that is no class, [`LabelError::Kind`] for names where the classes
    /// are numbers and the reverse.
    pub fn codes(&self, labels: &Labels) -> Result<Vec<u32>, LabelError> {
        let unknown = |row: usize, label: String| LabelError::Unknown {
            row,
            label,
            known: self.to_string(),
        };
        match (self, labels) {
            (Classes::Numbers(classes), Labels::Numbers(labels)) => {
                let few = |label: &f64| {
                    // All are looked at: which label comes next cannot be predicted.
                    let all = classes.iter().enumerate();
                    all.fold(None, |code, (at, class)| match class == label {
                        true => Some(at),
                        false => code,
                    })
                };
                let many = |label: &f64| {
                    // Adding 0 makes -0 a 0.
                    let find = classes.binary_search_by(|class| class.total_cmp(&(label + 0.0)));
                    find.ok()
                };
                let found = match classes.len() {
                    0..=FEW => found(labels, few),
                    _ => found(labels, many),
                };
                found.map_err(|row| unknown(row, labels[row].to_string()))
            }
            (Classes::Text(classes), Labels::Text(labels)) => {
                let find = |label: &String| classes.binary_search(label).ok();
                found(labels, find).map_err(|row| unknown(row, format!("{:?}", labels[row])))
            }
            _ => Err(LabelError::Kind {
                expected: self.kind(),
                found: labels.kind(),
            }),
        }
    }

    /// The labels of predicted classes.
    ///
    /// # Panics
    /// When a code is not below [`Classes::len`].
    pub fn decode(&self, codes: &[u32]) -> Labels {
        match self {
            Classes::Numbers(classes) => {
                Labels::Numbers(codes.iter().map(|code| classes[*code as usize]).collect())
            }
            Classes::Text(classes) => Labels::Text(
                codes
                    .iter()
                    .map(|code| classes[*code as usize].clone())
                    .collect(),
            ),
        }
    }

    /// k.
    pub fn len(&self) -> usize {
        match self {
            Classes::Numbers(classes) => classes.len(),
            Classes::Text(classes) => classes.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The label of a class as text; whole numbers without a decimal point.
    ///
    /// # Panics
    /// When `class` is not below [`Classes::len`].
    pub fn label(&self, class: usize) -> String {
        match self {
            Classes::Numbers(classes) => classes[class].to_string(),
            Classes::Text(classes) => classes[class].clone(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Classes::Numbers(_) => "numbers",
            Classes::Text(_) => "text",
        }
    }
}

/// Labels that one task looks at.
const CHUNK: usize = 1 << 16;
/// Different labels up to which a task compares each with those that it has seen, instead of sorting all.
const FEW: usize = 8;

/// The different ones of `labels` in ascending order. Each task finds those of a part, of which little is left.
fn distinct<'a, T: Sync, D: Send + PartialEq>(
    labels: &'a [T],
    as_sorted: impl Fn(&'a T) -> D + Sync,
    order: impl Fn(&D, &D) -> Ordering + Sync,
) -> Vec<D> {
    let sorted = |mut part: Vec<D>| {
        part.sort_unstable_by(&order);
        part.dedup();
        part
    };
    let of_part = |part: &'a [T]| {
        let few = seen(part.iter().map(&as_sorted), FEW);
        few.unwrap_or_else(|| sorted(part.iter().map(&as_sorted).collect()))
    };
    let of_part = |number| of_part(parallel::chunk(labels, CHUNK, number));
    let parts = parallel::map(labels.len().div_ceil(CHUNK), of_part);
    sorted(parts.into_iter().flatten().collect())
}

/// The different ones of `labels` in the order in which they appear; `None` where they are more than `most`.
fn seen<D: PartialEq>(labels: impl Iterator<Item = D>, most: usize) -> Option<Vec<D>> {
    let mut seen: Vec<D> = Vec::new();
    for label in labels {
        if !seen.contains(&label) {
            if seen.len() == most {
                return None;
            }
            seen.push(label);
        }
    }
    Some(seen)
}

/// Labels are finite, and whole, as scikit-learn tells them from the targets of a regression.
fn check_whole(labels: &[f64]) -> Result<(), LabelError> {
    // Numbers that 64 bits hold, which all labels are, are told by a loop that vectorises.
    let is_whole = |label: &f64| *label == (*label as i64) as f64;
    let are_whole = |part: &[f64]| part.iter().fold(true, |all, label| all & is_whole(label));
    if parallel::all_chunks(labels, CHUNK, are_whole) {
        return Ok(());
    }
    if let Some(row) = labels.iter().position(|label| !label.is_finite()) {
        let value = labels[row];
        return Err(LabelError::NotFinite { row, value });
    }
    match labels.iter().position(|label| label.fract() != 0.0) {
        Some(row) => Err(LabelError::Continuous {
            row,
            value: labels[row],
        }),
        None => Ok(()),
    }
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

impl fmt::Display for Classes {
    /// The labels in order, of many only the first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = (0..self.len().min(LISTED))
            .map(|class| self.label(class))
            .collect();
        f.write_str(&shown.join(", "))?;
        match self.len().checked_sub(LISTED + 1) {
            Some(_) => write!(f, " and {} more", self.len() - LISTED),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(labels: &[&str]) -> Labels {
        Labels::Text(labels.iter().map(|label| (*label).to_owned()).collect())
    }

    #[test]
    fn whole_numbers_of_any_size_are_labels_and_others_are_not() {
        let encode = |labels: &[f64]| Classes::encode(&Labels::Numbers(labels.to_vec()));
        let (classes, codes) = encode(&[1e300, -1e19, 1e300]).expect("whole numbers");
        assert_eq!((classes.len(), codes), (2, vec![1, 0, 1]));
        let error = encode(&[1.0, 0.5, f64::NAN]).expect_err("not finite");
        assert!(
            matches!(error, LabelError::NotFinite { row: 2, .. }),
            "{error}"
        );
        let error = encode(&[1e300, 0.5]).expect_err("not whole");
        assert_eq!(error, LabelError::Continuous { row: 1, value: 0.5 });
    }

    #[test]
    fn few_and_many_classes_have_the_codes_of_their_order() {
        for count in [1, 2, FEW, FEW + 1, 3 * FEW] {
            let labels: Vec<f64> = (0..1_000).map(|i| (i * 7 % count) as f64 - 0.0).collect();
            let expected: Vec<u32> = labels.iter().map(|label| *label as u32).collect();
            let labels = Labels::Numbers(labels);
            assert_eq!(labels.distinct(FEW), count.min(FEW), "{count} classes");
            assert_eq!(Classes::encode(&labels).expect("labels").1, expected);
        }
    }

    #[test]
    fn numbers_are_sorted_by_size_and_zeros_are_one() {
        let labels = Labels::Numbers(vec![10.0, -1.0, 0.0, 2.0, -0.0, 10.0]);
        let (classes, codes) = Classes::encode(&labels).expect("finite labels");
        assert_eq!(classes, Classes::Numbers(vec![-1.0, 0.0, 2.0, 10.0]));
        assert_eq!(codes, [3, 0, 1, 2, 1, 3]);
        assert_eq!(classes.label(3), "10");
        assert_eq!(classes.decode(&[3, 0]), Labels::Numbers(vec![10.0, -1.0]));
    }

    #[test]
    fn text_is_sorted_by_code_points() {
        let labels = text(&["é", "b", "B", "a", "b", "10", "9"]);
        let (classes, codes) = Classes::encode(&labels).expect("text");
        assert_eq!(classes.to_string(), "10, 9, B, a, b, é");
        assert_eq!(codes, [5, 4, 2, 3, 4, 0, 1]);
        assert_eq!(classes.decode(&codes), labels);
    }

    #[test]
    fn labels_that_a_model_does_not_know_are_named() {
        let (classes, _) = Classes::encode(&Labels::Numbers(vec![1.0, 2.0])).expect("finite");
        let error = classes
            .codes(&Labels::Numbers(vec![1.0, 3.0]))
            .expect_err("unknown");
        assert!(
            error
                .to_string()
                .contains("labels 1, 2, found 3 for sample 1"),
            "{error}"
        );
        assert!(matches!(
            classes.codes(&text(&["1"])),
            Err(LabelError::Kind { .. })
        ));
        let nan = Classes::encode(&Labels::Numbers(vec![0.0, f64::NAN]));
        assert!(matches!(nan, Err(LabelError::NotFinite { row: 1, .. })));
    }

    #[test]
    fn json_has_numbers_as_numbers_and_names_as_strings() {
        let names = Classes::Text(vec!["a".into()]);
        assert_eq!(serde_json::to_string(&names).expect("JSON"), r#"["a"]"#);
        for classes in [Classes::Numbers(vec![-1.0, 1.0]), names] {
            let json = serde_json::to_string(&classes).expect("JSON");
            assert_eq!(
                serde_json::from_str::<Classes>(&json).expect("classes"),
                classes
            );
        }
    }
}
