//! What becomes of tables, and how those of a model are found again.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::ReadArgs;
use crate::cli::data::Reading;
use crate::io::{self, Columns, Missing, TableOptions, Unseen};
use crate::matrix::Schema;

/// What becomes of the columns of DATA.
#[derive(Debug, Args)]
#[command(next_help_heading = "Columns")]
pub(in crate::cli) struct TableArgs {
    /// Names of the features, one in each line, for files that have none; the model keeps them
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,

    /// What to do about missing values of a CSV file: empty fields, NA, NaN, null, ? and their like
    #[arg(long, value_enum, value_name = "RULE", default_value = "error")]
    missing: MissingName,

    /// Hash the text columns of a CSV file into N columns, such as 2^20, instead of one for each category
    #[arg(long, value_name = "N", value_parser = buckets)]
    hash: Option<u32>,

    /// Columns of a CSV file that are categories although numbers or dates stand in them, by name or number
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    categorical: Vec<String>,

    /// Columns of a CSV file that are left out, by name or number
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    drop: Vec<String>,
}

/// `--missing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MissingName {
    /// End with an error that names row and column
    Error,
    /// The mean of the column for a number, no category for a text
    Mean,
    /// As mean, with a further column that is 1 where a value is missing
    Indicator,
}

impl TableArgs {
    /// How training data are read.
    ///
    /// # Errors
    /// When names cannot be read.
    pub(in crate::cli) fn reading<'a>(&self, args: &'a ReadArgs) -> Result<Reading<'a>> {
        let table = TableOptions {
            names: self.names.as_deref().map(io::read_names).transpose()?,
            missing: match self.missing {
                MissingName::Error => Missing::Refuse,
                MissingName::Mean => Missing::Mean,
                MissingName::Indicator => Missing::Indicator,
            },
            buckets: self.hash,
            categorical: self.categorical.clone(),
            drop: self.drop.clone(),
            ..TableOptions::default()
        };
        Ok(Reading {
            columns: Columns::Infer,
            args,
            first_target: None,
            table,
        })
    }
}

/// How the columns of DATA become those of a model.
#[derive(Debug, Args)]
#[command(next_help_heading = "Columns")]
pub(in crate::cli) struct MatchArgs {
    /// Names of the features, one in each line, for files that have none: they must be those of the model
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,

    /// What to do about categories that the model was not trained on
    #[arg(long, value_enum, value_name = "RULE", default_value = "zeros")]
    unseen: UnseenName,

    /// What to do about columns that the model does not know
    #[arg(long, value_enum, value_name = "RULE", default_value = "refuse")]
    extra_columns: ExtraName,
}

/// `--unseen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UnseenName {
    /// They count as none of the known ones, and a warning counts them
    Zeros,
    /// End with an error that names row and column
    Refuse,
}

/// `--extra-columns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExtraName {
    /// End with an error that names them
    Refuse,
    /// Leave them out
    Ignore,
}

impl MatchArgs {
    /// Tables become what they were in training.
    ///
    /// # Errors
    /// When names cannot be read.
    pub(in crate::cli) fn options(&self, schema: &Schema) -> Result<TableOptions> {
        Ok(TableOptions {
            names: self.names.as_deref().map(io::read_names).transpose()?,
            unseen: match self.unseen {
                UnseenName::Zeros => Unseen::Zeros,
                UnseenName::Refuse => Unseen::Refuse,
            },
            ignore_extra: self.extra_columns == ExtraName::Ignore,
            schema: Some(schema.clone()),
            ..TableOptions::default()
        })
    }
}

/// Reads a number of columns, as digits or as a power such as 2^20.
fn buckets(text: &str) -> Result<u32, &'static str> {
    const EXPECTED: &str = "expected a number of columns from 1 to 2^30, such as 2^20";
    let number = match text.split_once('^') {
        Some((base, power)) => {
            let (base, power) = (base.parse::<u32>(), power.parse::<u32>());
            base.ok()
                .zip(power.ok())
                .and_then(|(base, power)| base.checked_pow(power))
        }
        None => text.parse().ok(),
    };
    number
        .filter(|number| (1..=1 << 30).contains(number))
        .ok_or(EXPECTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashed_columns_are_a_number_or_a_power() {
        assert_eq!([buckets("2^20"), buckets("1000")], [Ok(1 << 20), Ok(1000)]);
        for wrong in ["", "0", "2^31", "2^", "-1", "x^2", "9^99"] {
            assert!(buckets(wrong).is_err(), "{wrong}");
        }
    }
}
