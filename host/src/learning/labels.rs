//! Class labels of any kind, and the classes that they name.
//!
//! A classifier works with classes 0..k. What they are called is kept: numbers as LIBSVM files and npy arrays
//! have them, text as CSV files do. Classes are sorted as scikit-learn's `LabelEncoder` sorts them: numbers by
//! size, text by code points.

mod error;
mod label;
mod numbering;
mod runs;
mod slice;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::codes::Codes;

pub use error::LabelError;
pub use label::Label;
pub use slice::LabelSlice;

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
/// assert_eq!((classes.len(), codes.to_vec()), (2, vec![0, 1, 0]));
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
}

impl Classes {
    /// The classes that `labels` name, and the class of each sample.
    ///
    /// -0 and 0 are one label.
    ///
    /// # Errors
    /// [`LabelError`] for numbers that are not finite, or not whole, or too long for f64.
    pub fn encode<'l>(
        labels: impl Into<LabelSlice<'l>>,
    ) -> Result<(Self, Codes<'static>), LabelError> {
        labels.into().encode()
    }

    /// The class of each sample.
    ///
    /// # Errors
    /// [`LabelError::Unknown`] for a label that is no class, [`LabelError::Kind`] for names where the classes
    /// are numbers and the reverse.
    pub fn codes<'l>(&self, labels: impl Into<LabelSlice<'l>>) -> Result<Vec<u32>, LabelError> {
        labels.into().codes(self)
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
