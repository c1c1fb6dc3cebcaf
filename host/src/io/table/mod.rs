//! Tables as people have them: text categories, missing values, names, columns in any order.
//!
//! [`read_table`] reads every format that [`read`](super::read) reads. Of a CSV file it makes numbers:
//!
//! | column | becomes |
//! |---|---|
//! | numbers | a column |
//! | numbers, some missing | an error, or with [`Missing::Mean`] the mean of the others in their place, or with [`Missing::Indicator`] that and a column of zeros and ones |
//! | text | a column of zeros and ones for each category, in ascending order of their bytes; or hashed |
//! | dates | an error with advice |
//!
//! A column is text if more than half of the values in the first thousand lines are; a stray text among numbers is
//! an error. Missing are empty fields, `NA`, `N/A`, `NaN`, `null`, `None`, `?` and their like. Where a column becomes
//! zeros and ones X is sparse, else dense; files of nothing but numbers take the faster reader.
//!
//! How it was done is the [`Schema`] of the result, which models keep. Given one, columns are matched by name, and a
//! category that it does not know has zeros in all columns of its kind, counted in [`Table::unseen`].

mod apply;
mod cells;
mod encode;
mod further;
mod head;
mod layout;
mod learn;
mod plain;
mod portion;
mod problem;
#[cfg(test)]
mod tests;

use std::path::Path;

use super::error::ReadError;
use super::options::ReadOptions;
use crate::matrix::{Element, Features, Schema};

pub use portion::{Portion, PortionFacts, ReadPortion, TableRows, read_portion};
pub use problem::TableProblem;

/// What is done about missing values of features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// They are an error.
    #[default]
    Refuse,
    /// The mean of the column stands in for a missing number, of a missing category all columns are 0.
    Mean,
    /// As [`Missing::Mean`]; a further column is 1 where a value is missing, for columns in which that occurs.
    Indicator,
}

/// What is done about categories that were not in the training data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unseen {
    /// All columns of the category are 0, and [`Table::unseen`] counts them.
    #[default]
    Zeros,
    /// They are an error.
    Refuse,
}

/// How a table becomes features.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableOptions {
    /// Names of the features, for files that have none.
    pub names: Option<Vec<String>>,
    /// What is done about missing values.
    pub missing: Missing,
    /// Columns that all text columns are hashed into, instead of one for each category.
    pub buckets: Option<u32>,
    /// Columns that are categories whatever stands in them, by name or number.
    pub categorical: Vec<String>,
    /// Columns that are left out, by name or number.
    pub drop: Vec<String>,
    /// Columns that are targets besides [`ReadOptions::target`], by name or number: numbers, each of which is the target of
    /// a regression of its own. Of CSV files without a `schema` only.
    pub further: Vec<String>,
    /// What is done about categories that `schema` does not know.
    pub unseen: Unseen,
    /// Whether columns that `schema` does not know are left out instead of being an error.
    pub ignore_extra: bool,
    /// What a model keeps of its training data: the table becomes the same columns.
    pub schema: Option<Schema>,
}

/// Targets as a file has them.
#[derive(Debug, Clone, PartialEq)]
pub enum TableTargets<T> {
    /// Numbers.
    Numbers(Vec<T>),
    /// Texts: names of classes.
    Text(Vec<String>),
}

/// One of [`TableOptions::further`].
#[derive(Debug, Clone, PartialEq)]
pub struct FurtherTarget<T> {
    /// m numbers.
    pub targets: Vec<T>,
    /// As [`Table::schema`] where this column is the target, and all other targets are left out.
    pub schema: Schema,
}

/// Categories of a column that a model was not trained on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnseenCount {
    /// The column.
    pub column: String,
    /// Rows with such a category.
    pub rows: u64,
    /// One of them.
    pub example: String,
}

/// A table as features, and how it became that.
#[derive(Debug, Clone, PartialEq)]
pub struct Table<T> {
    /// m × n.
    pub features: Features<T>,
    /// m targets, if the file has them.
    pub targets: Option<TableTargets<T>>,
    /// Further targets, in the order requested.
    pub further: Vec<FurtherTarget<T>>,
    /// What the columns are.
    pub schema: Schema,
    /// Categories that the given schema does not know.
    pub unseen: Vec<UnseenCount>,
}

/// Reads a data set with all that is known about its columns; `-` is standard input.
///
/// ```
/// use warpfuse::io::{read_table, ReadOptions, TableOptions, Target};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("homes.csv");
/// std::fs::write(&path, "city,rooms,price\nUlm,3,200\nBonn,2,180\nUlm,4,250\n")?;
/// let options = ReadOptions { target: Some(Target::new("price")), ..ReadOptions::default() };
/// let homes = read_table::<f64>(&path, &options, &TableOptions::default())?;
/// let names = homes.schema.feature_names(3).expect("a header");
/// assert_eq!(names, ["city=Bonn", "city=Ulm", "rooms"]);
///
/// // Another file, its columns in another order.
/// std::fs::write(&path, "rooms,city\n5,Bonn\n1,Kiel\n")?;
/// let like = TableOptions { schema: Some(homes.schema), ..TableOptions::default() };
/// let others = read_table::<f64>(&path, &ReadOptions::default(), &like)?;
/// assert_eq!((others.features.cols(), others.unseen[0].example.as_str()), (3, "Kiel"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`read`](super::read), and [`ReadError::Table`] with the line and the column by name.
pub fn read_table<T: Element>(
    path: impl AsRef<Path>,
    options: &ReadOptions,
    table: &TableOptions,
) -> Result<Table<T>, ReadError> {
    apply::read(path.as_ref(), options, table)
}

/// Reads names of features, one in each line.
///
/// # Errors
/// As [`read_text_column`](super::read_text_column), and [`ReadError::Table`] for a name that occurs twice.
pub fn read_names(path: impl AsRef<Path>) -> Result<Vec<String>, ReadError> {
    let path = path.as_ref();
    let names = super::read_text_column(path)?;
    let mut seen = std::collections::HashSet::new();
    match names.iter().position(|name| !seen.insert(name)) {
        None => Ok(names),
        Some(at) => Err(ReadError::Table {
            path: path.to_owned(),
            line: at as u64 + 1,
            problem: TableProblem::TwiceNamed {
                name: names[at].clone(),
            },
        }),
    }
}
