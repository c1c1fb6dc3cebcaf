//! What is known about each row: a number, or a label.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use rayon::prelude::*;

use super::data::text_targets;
use super::output;
use crate::io::{self, TableTargets};
use crate::learning::{Classes, Labels, Targets};
use crate::matrix::Element;

/// Whether a model predicts numbers or labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// A regression.
    Numbers,
    /// A classification.
    Labels,
}

/// Targets in memory.
#[derive(Debug)]
pub(super) enum Known<T> {
    /// Of a regression.
    Numbers(Vec<T>),
    /// Of a classification, with the classes that occur.
    Labels {
        /// One per row.
        labels: Labels,
        /// In ascending order.
        classes: Classes,
    },
}

impl<T: Element> Known<T> {
    /// Targets that came with the features.
    ///
    /// # Errors
    /// When labels are not finite, or texts are to be numbers.
    pub(super) fn of_targets(targets: TableTargets<T>, task: Task) -> Result<Self> {
        match (targets, task) {
            (TableTargets::Numbers(numbers), _) => Self::of_numbers(numbers, task),
            (TableTargets::Text(texts), Task::Labels) => Self::of_labels(Labels::of_text(texts)),
            (TableTargets::Text(texts), Task::Numbers) => bail!(text_targets(&texts)),
        }
    }

    /// Numbers that came with the features.
    ///
    /// # Errors
    /// When labels are not finite.
    fn of_numbers(numbers: Vec<T>, task: Task) -> Result<Self> {
        match task {
            Task::Numbers => Ok(Known::Numbers(numbers)),
            Task::Labels => {
                let numbers = numbers.par_iter().map(|number| number.to_f64()).collect();
                Self::of_labels(Labels::Numbers(numbers))
            }
        }
    }

    /// Reads `path`: numbers or labels, from npy, or from text with one per line.
    ///
    /// # Errors
    /// When the file cannot be read or has not one target for each of `rows` rows.
    pub(super) fn read(path: &Path, rows: usize, task: Task) -> Result<Self> {
        check_is_file(path)?;
        let known = match task {
            Task::Numbers => Known::Numbers(io::read_numbers::<T>(path)?),
            Task::Labels if output::extension(path) == "npy" => {
                Self::of_labels(match io::read_text_vector(path)? {
                    Some(texts) => Labels::of_text(texts),
                    None => Labels::Numbers(io::read_vector::<f64>(path)?),
                })?
            }
            Task::Labels => Self::of_labels(Labels::of_text(io::read_text_column(path)?))?,
        };
        let found = known.len();
        ensure!(
            found == rows,
            "{}: expected one target for each of the {rows} rows, found {found}",
            path.display()
        );
        Ok(known)
    }

    fn of_labels(labels: Labels) -> Result<Self> {
        let (classes, _) = Classes::encode(&labels)?;
        Ok(Known::Labels { labels, classes })
    }

    /// Rows.
    pub(super) fn len(&self) -> usize {
        match self {
            Known::Numbers(numbers) => numbers.len(),
            Known::Labels { labels, .. } => labels.len(),
        }
    }

    /// As estimators take them.
    pub(super) fn targets(&self) -> Targets<'_, T> {
        match self {
            Known::Numbers(numbers) => Targets::Numbers(numbers),
            Known::Labels { labels, .. } => Targets::Labels(labels),
        }
    }

    /// The classes, of labels.
    pub(super) fn classes(&self) -> Option<&Classes> {
        match self {
            Known::Numbers(_) => None,
            Known::Labels { classes, .. } => Some(classes),
        }
    }
}

/// Says how a column is named where one may be meant: there is no such file, nor does it look like one.
fn check_is_file(path: &Path) -> Result<()> {
    let name = path.display();
    let is_name = path.extension().is_none() && path.components().count() == 1;
    ensure!(
        path.exists() || !is_name || name.to_string() == "-",
        "expected a file of targets, found none called {name}; a column of the data is --target-column {name}"
    );
    Ok(())
}
