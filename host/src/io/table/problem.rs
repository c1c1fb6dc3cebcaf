//! What is wrong with a table, apart from its syntax.

use std::fmt;

/// Why a table was not read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TableProblem {
    /// A value is missing, which is refused unless the caller says what to do.
    Missing {
        /// The column.
        column: String,
        /// Whether a model says so, which was trained without missing values.
        by_model: bool,
    },
    /// The target of a sample is missing.
    MissingTarget {
        /// The column.
        column: String,
    },
    /// Something else than a number in a column of numbers.
    NotANumber {
        /// The column.
        column: String,
        /// What stands there.
        found: String,
        /// Whether a model says so, for which the column held numbers.
        by_model: bool,
    },
    /// A column of dates.
    Date {
        /// The column.
        column: String,
        /// The first of them.
        found: String,
        /// Whether a model says so, for which the column held numbers.
        by_model: bool,
    },
    /// A column of text in which no text occurs twice.
    AllDifferent {
        /// The column.
        column: String,
        /// Different texts.
        count: usize,
    },
    /// A category that the model was not trained on, where that is refused.
    Unseen {
        /// The column.
        column: String,
        /// The category.
        found: String,
    },
    /// The table lacks columns that the model needs.
    LacksColumns {
        /// Their names.
        names: Vec<String>,
    },
    /// The table has columns that the model does not know.
    ExtraColumns {
        /// Their names.
        names: Vec<String>,
    },
    /// A column occurs twice.
    TwiceNamed {
        /// Its name.
        name: String,
    },
    /// Two targets are one column.
    TwiceTarget {
        /// Its name.
        name: String,
    },
    /// There is no such column.
    NoSuchColumn {
        /// What was requested.
        wanted: String,
        /// What there is, shortened.
        found: String,
    },
    /// The model's columns were made from a table, and the file is none.
    NoTable {
        /// The format of the file.
        format: String,
    },
    /// An option has no meaning for the format of the file.
    Idle {
        /// The option of the command line.
        option: &'static str,
        /// The formats that it is for.
        of: &'static str,
        /// The format of the file.
        format: String,
    },
    /// The model knows columns by their names, and the table has no header.
    NoHeader,
    /// Another number of columns than the model was trained on, and no names.
    Count {
        /// Columns of the training data.
        expected: usize,
        /// Columns of the table.
        found: usize,
    },
}

/// Names that a message lists.
const LISTED: usize = 10;

/// Names in quotes, of many only the first.
pub(super) fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|name| format!("`{}`", name.escape_debug()))
        .collect();
    match names.len().checked_sub(LISTED) {
        Some(more @ 1..) => format!("{} and {more} more", shown.join(", ")),
        _ => shown.join(", "),
    }
}

impl fmt::Display for TableProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { column, by_model } => {
                write!(f, "expected a value in column `{column}`, found a missing one")?;
                match by_model {
                    true => f.write_str(", for which the model has no substitute"),
                    false => Ok(()),
                }
            }
            Self::MissingTarget { column } => {
                write!(f, "expected a target in column `{column}`, found a missing value; remove the row")
            }
            Self::NotANumber { column, found, .. } => {
                write!(f, "expected a number in column `{column}`, which holds numbers, found `{found}`")
            }
            Self::Date { column, found, .. } => write!(
                f,
                "expected numbers or categories in column `{column}`, found the date `{found}`"
            ),
            Self::AllDifferent { column, count } => write!(
                f,
                "expected categories that repeat in column `{column}`, found {count} different texts in as many rows"
            ),
            Self::Unseen { column, found } => write!(
                f,
                "expected a category of column `{column}` that the model was trained on, found `{found}`"
            ),
            Self::LacksColumns { names } => {
                write!(f, "expected all columns that the model was trained on, found none called {}", listed(names))
            }
            Self::ExtraColumns { names } => {
                write!(f, "expected the columns that the model was trained on and no others, found {} too", listed(names))
            }
            Self::TwiceNamed { name } => write!(f, "expected different names of columns, found `{name}` twice"),
            Self::TwiceTarget { name } => write!(f, "expected different columns of targets, found `{name}` twice"),
            Self::NoSuchColumn { wanted, found } => {
                write!(f, "expected a column called `{wanted}`, found {found}")
            }
            Self::NoTable { format } => write!(
                f,
                "expected a CSV file, from which the model's columns were made, found a {format} file"
            ),
            Self::Idle { option, of, format } => {
                write!(f, "expected a {of} file, for which {option} is meant, found a {format} file")
            }
            Self::NoHeader => f.write_str(
                "expected a header, as the model knows its columns by their names, found a file without",
            ),
            Self::Count { expected, found } => {
                write!(f, "expected {expected} columns of features, as in training, found {found}")
            }
        }
    }
}

impl TableProblem {
    /// What to do about it, in words of the command line, whose options are those of
    /// [`TableOptions`](super::TableOptions).
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Missing {
                by_model: false, ..
            } => {
                "`--missing mean` puts the column's mean for missing numbers and no category for missing texts, \
                 `--missing indicator` adds a column that says so, `--drop NAME` leaves the column out"
            }
            Self::Missing { by_model: true, .. } => {
                "train the model with `--missing mean` or `--missing indicator`, or fill the value"
            }
            Self::MissingTarget { .. } => "remove rows without a target",
            Self::NotANumber { by_model: true, .. } | Self::Date { by_model: true, .. } => {
                "give numbers, as in the training data, or train the model with `--categorical` for this column"
            }
            Self::NotANumber { .. } => {
                "correct the value; `--categorical NAME` takes the column as text, `--drop NAME` leaves it out"
            }
            Self::Date { .. } => {
                "turn dates into numbers first (days since a date, month, weekday); `--drop NAME` leaves the column out, \
                 `--categorical NAME` takes each date as a category"
            }
            Self::AllDifferent { .. } => {
                "`--drop NAME` leaves the column out, `--hash 2^20` hashes texts, `--categorical NAME` takes each as a category"
            }
            Self::Unseen { .. } => {
                "without `--unseen refuse` such a category counts as none of the known ones"
            }
            Self::LacksColumns { .. } => {
                "give a file with these columns; their order does not matter"
            }
            Self::ExtraColumns { .. } => "`--extra-columns ignore` leaves them out",
            Self::TwiceNamed { .. } => "rename one of them",
            Self::TwiceTarget { .. } => "name each of them once",
            Self::NoSuchColumn { .. } => "give a name of the header",
            Self::NoTable { .. } => "give a CSV file with the columns of the training data",
            Self::Idle { .. } => "leave the option out, or say with `--format` what the file is",
            Self::NoHeader => "add a header; `--header no` takes the columns by their order",
            Self::Count { .. } => "give a file with the columns of the training data",
        }
    }
}
