//! What the columns of X are called and how they were made: what a model keeps of the file that it was trained on.

use serde::{Deserialize, Serialize};

/// How text and numbers of one column of a table became columns of X.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Numbers, as they are.
    Number {
        /// What stands in for a missing value: the mean of those that were there; `None` refuses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fill: Option<f64>,
        /// Whether a further column says with 1 that the value is missing.
        #[serde(default)]
        indicator: bool,
    },
    /// Text: a column of zeros and ones for each category.
    Category {
        /// The categories, in ascending order of their bytes.
        levels: Vec<String>,
        /// What a missing category is.
        missing: MissingCategory,
    },
    /// Text: a one in a column that the hash of name and text chooses; the hashed columns share them.
    Hashed {
        /// What a missing category is.
        missing: MissingCategory,
    },
}

/// What a missing category becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissingCategory {
    /// An error.
    Refused,
    /// Zeros in all columns of the categories.
    Zeros,
    /// A one in a column of its own, the last.
    OwnColumn,
}

/// A column of a table that X was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableColumn {
    /// Its name, if the table has a header.
    pub name: Option<String>,
    /// Its number in the table, 1 the first; 0 where it is not known.
    #[serde(default)]
    pub number: u32,
    /// What became of it.
    pub kind: ColumnKind,
}

impl TableColumn {
    /// Columns of X that it became; none of its own if it is hashed.
    pub fn width(&self) -> usize {
        match &self.kind {
            ColumnKind::Number { indicator, .. } => 1 + usize::from(*indicator),
            ColumnKind::Category { levels, missing } => {
                levels.len() + usize::from(*missing == MissingCategory::OwnColumn)
            }
            ColumnKind::Hashed { .. } => 0,
        }
    }
}

/// How a table of text and numbers became X.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TableEncoding {
    /// The columns of the table that are features, in the order of X.
    pub columns: Vec<TableColumn>,
    /// Columns of X that the hashed ones share, after all others; 0 without any.
    #[serde(default)]
    pub buckets: u32,
    /// Names of columns that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// Whether the targets are text.
    #[serde(default)]
    pub text_targets: bool,
}

impl TableEncoding {
    /// n.
    pub fn width(&self) -> usize {
        let own: usize = self.columns.iter().map(TableColumn::width).sum();
        own + self.buckets as usize
    }

    /// Whether every column is a number that becomes a column of X as it is.
    pub fn is_plain(&self) -> bool {
        let plain = |column: &TableColumn| {
            matches!(
                column.kind,
                ColumnKind::Number {
                    fill: None,
                    indicator: false
                }
            )
        };
        self.buckets == 0 && self.columns.iter().all(plain)
    }

    /// Whether X is sparse: where a column became zeros and ones.
    pub fn is_sparse(&self) -> bool {
        let number = |column: &TableColumn| matches!(column.kind, ColumnKind::Number { .. });
        self.buckets > 0 || !self.columns.iter().all(number)
    }

    /// The name of a column of X, if the table has a header.
    fn name_of(&self, column: usize) -> Option<String> {
        self.part(column, |of| of.name.clone())
    }

    /// What `called` says about the column that a column of X was made from, and which part of it that is.
    fn part(
        &self,
        column: usize,
        called: impl Fn(&TableColumn) -> Option<String>,
    ) -> Option<String> {
        let mut start = 0;
        for of in &self.columns {
            let width = of.width();
            if column < start + width {
                return Some(of.part_name(&called(of)?, column - start));
            }
            start += width;
        }
        let bucket = column - start;
        (bucket < self.buckets as usize).then(|| format!("hash[{bucket}]"))
    }
}

impl TableColumn {
    /// The name, or the number where there is none.
    pub fn label(&self) -> Option<String> {
        let number = (self.number > 0).then(|| self.number.to_string());
        self.name.clone().or(number)
    }

    fn part_name(&self, name: &str, part: usize) -> String {
        match &self.kind {
            ColumnKind::Number { .. } if part == 0 => name.to_owned(),
            ColumnKind::Category { levels, .. } if part < levels.len() => {
                format!("{name}={}", levels[part])
            }
            _ => format!("{name} (missing)"),
        }
    }
}

/// What a model keeps of the data that it was trained on, so that it takes the same kind of data afterwards.
///
/// ```
/// use warpfuse::matrix::Schema;
/// let schema = Schema::named(["age", "height"]);
/// assert_eq!((schema.name(1).as_deref(), schema.name(2)), (Some("height"), None));
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Schema {
    /// The format of the file, such as `LIBSVM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// What the first column of a LIBSVM file is called: 0 or 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_base: Option<u8>,
    /// Names of the columns of X, where they are not those of `table`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// How X was made from a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<TableEncoding>,
    /// The name of the targets, where the file has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl Schema {
    /// Of columns with these names.
    pub fn named<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Schema {
        Schema {
            names: Some(names.into_iter().map(Into::into).collect()),
            ..Schema::default()
        }
    }

    /// The name of a column of X, counted from 0, if it has one.
    pub fn name(&self, column: usize) -> Option<String> {
        match (&self.names, &self.table) {
            (Some(names), _) => names.get(column).cloned(),
            (None, Some(table)) => table.name_of(column),
            (None, None) => None,
        }
    }

    /// What a column of X, counted from 0, is called in messages: its name, or its number as the file has it.
    pub fn label(&self, column: usize) -> String {
        let table = self.table.as_ref();
        let own = || table.and_then(|table| table.part(column, TableColumn::label));
        self.name(column)
            .or_else(own)
            .unwrap_or_else(|| (column + self.first()).to_string())
    }

    /// The number of the first column where columns have no names: as the file counts.
    pub fn first(&self) -> usize {
        match (self.index_base, &self.table) {
            (Some(base), _) => usize::from(base),
            (None, Some(_)) => 1,
            (None, None) => 0,
        }
    }

    /// Names of all of `cols` columns, if every one has a name.
    pub fn feature_names(&self, cols: usize) -> Option<Vec<String>> {
        match &self.names {
            Some(names) => Some(names.clone()).filter(|names| names.len() == cols),
            None => {
                let table = self.table.as_ref()?;
                (0..cols).map(|column| table.name_of(column)).collect()
            }
        }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Schema::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_x_are_named_by_the_table() {
        let column = |name: &str, kind| TableColumn {
            name: Some(name.into()),
            number: 0,
            kind,
        };
        let table = TableEncoding {
            columns: vec![
                column(
                    "age",
                    ColumnKind::Number {
                        fill: Some(40.0),
                        indicator: true,
                    },
                ),
                column(
                    "city",
                    ColumnKind::Category {
                        levels: vec!["Bonn".into(), "Ulm".into()],
                        missing: MissingCategory::OwnColumn,
                    },
                ),
            ],
            buckets: 4,
            ..TableEncoding::default()
        };
        let schema = Schema {
            table: Some(table),
            ..Schema::default()
        };
        let names = schema.feature_names(9).expect("all have names");
        let expected = [
            "age",
            "age (missing)",
            "city=Bonn",
            "city=Ulm",
            "city (missing)",
        ];
        assert_eq!(&names[..5], &expected);
        assert_eq!(
            (names[5].as_str(), names[8].as_str()),
            ("hash[0]", "hash[3]")
        );
        assert_eq!(schema.name(9), None);
        let json = serde_json::to_string(&schema).expect("JSON");
        assert_eq!(serde_json::from_str::<Schema>(&json).expect("read"), schema);
    }

    #[test]
    fn columns_without_names_have_the_numbers_of_the_file() {
        let schema = Schema {
            index_base: Some(1),
            ..Schema::default()
        };
        assert_eq!(schema.label(0), "1");
        assert_eq!(Schema::default().label(0), "0");
        let kind = ColumnKind::Category {
            levels: vec!["Bonn".into()],
            missing: MissingCategory::Zeros,
        };
        let (name, number) = (None, 3);
        let table = TableEncoding {
            columns: vec![TableColumn { name, number, kind }],
            ..TableEncoding::default()
        };
        let schema = Schema {
            table: Some(table),
            ..Schema::default()
        };
        assert_eq!((schema.label(0), schema.name(0)), ("3=Bonn".into(), None));
    }
}
