//! Reading what DATA and `--target` name.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::args::ReadArgs;
use super::progress::Ui;
use super::targets::{Known, Task};
use crate::device::PhaseCost;
use crate::io::{
    self, CachePolicy, Columns, CsvOptions, FurtherTarget, ReadOptions, Table, TableOptions,
    TableTargets, Target,
};
use crate::matrix::{Element, Features, MatrixStats, Schema};

/// Which rows a member of a group has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// Those of all members.
    All,
    /// Its own alone.
    Own,
}

/// Data in memory, with what the report says about them.
pub(super) struct Loaded<T> {
    /// m × n, or as many of the m rows as `rows` says.
    pub(super) features: Arc<Features<T>>,
    /// Which rows `features` has; targets and sizes are of all.
    pub(super) rows: Rows,
    /// m targets, if there are any.
    pub(super) targets: Option<TableTargets<T>>,
    /// Those of `--target-columns` but the first.
    pub(super) further: Vec<FurtherTarget<T>>,
    /// What the columns are.
    pub(super) schema: Schema,
    /// Sizes.
    pub(super) stats: MatrixStats,
    /// Seconds that reading took.
    pub(super) seconds: f64,
    /// Bytes of the file, where it is one.
    pub(super) bytes: u64,
}

impl<T> Loaded<T> {
    /// What reading took.
    pub(super) fn read_cost(&self) -> PhaseCost {
        PhaseCost {
            seconds: self.seconds,
            read_bytes: self.bytes,
            ..PhaseCost::default()
        }
    }
}

/// How a file is read.
#[derive(Debug, Clone)]
pub(super) struct Reading<'a> {
    /// n.
    pub(super) columns: Columns,
    /// As typed.
    pub(super) args: &'a ReadArgs,
    /// The first of several columns of targets; the others are the table's.
    pub(super) first_target: Option<String>,
    /// What becomes of a table.
    pub(super) table: TableOptions,
}

/// [`load_as`] of data that no model knows yet, where no columns have names of their own.
///
/// # Errors
/// As [`load_as`].
pub(super) fn load<T: Element>(
    data: &Path,
    target: Option<&Path>,
    columns: Columns,
    args: &ReadArgs,
    ui: &Ui,
) -> Result<Loaded<T>> {
    load_as(data, target, &Reading::of_numbers(columns, args), ui)
}

/// Reads `data`; targets come from `target` where one is named.
///
/// # Errors
/// When a file cannot be read, or there are not as many targets as rows.
pub(super) fn load_as<T: Element>(
    data: &Path,
    target: Option<&Path>,
    reading: &Reading<'_>,
    ui: &Ui,
) -> Result<Loaded<T>> {
    let start = Instant::now();
    let bar = ui.reading(data);
    let options = reading.options(bar.reader());
    let Table {
        features,
        mut targets,
        further,
        schema,
        unseen,
    } = io::read_table::<T>(data, &options, &reading.table)?;
    drop(bar);
    for column in unseen {
        ui.warn(format_args!(
            "{}: column `{}` has categories that the model was not trained on in {} rows, such as `{}`: they count as none \
             of the known ones (--unseen refuse makes this an error)",
            data.display(),
            column.column,
            column.rows,
            column.example
        ));
    }
    if let Some(path) = target {
        targets = Some(TableTargets::Numbers(read_targets(path, features.rows())?));
    }
    let stats = MatrixStats::of(&features);
    let seconds = start.elapsed().as_secs_f64();
    tracing::info!(
        rows = stats.rows,
        cols = stats.cols,
        nnz = stats.nnz,
        seconds,
        "data read"
    );
    Ok(Loaded {
        features: Arc::new(features),
        rows: Rows::All,
        targets,
        further,
        schema,
        stats,
        seconds,
        bytes: data.metadata().map_or(0, |file| file.len()),
    })
}

impl<'a> Reading<'a> {
    /// Of data that no model knows yet, where no columns have names of their own.
    pub(super) fn of_numbers(columns: Columns, args: &'a ReadArgs) -> Reading<'a> {
        Reading {
            columns,
            args,
            first_target: None,
            table: TableOptions::default(),
        }
    }

    /// As the readers take it.
    pub(super) fn options(&self, progress: io::Progress) -> ReadOptions {
        let args = self.args;
        let cache = if args.cache {
            CachePolicy::ReadWrite
        } else {
            CachePolicy::Off
        };
        ReadOptions {
            format: args.format.map(Into::into),
            index_base: args.index_base.into(),
            columns: self.columns,
            target: self.target().map(Target::new),
            csv: CsvOptions {
                delimiter: args.delimiter,
                header: args.header.into(),
            },
            cache,
            progress: Some(progress),
            ..ReadOptions::default()
        }
    }

    /// The column of the targets: of several the first.
    fn target(&self) -> Option<&str> {
        let column = self.args.target_column.as_deref();
        column.or(self.first_target.as_deref())
    }
}

/// Reads `data` with targets for `task`, from `target` where one is named.
///
/// # Errors
/// As [`load`]; also when there are no targets.
pub(super) fn load_known<T: Element>(
    data: &Path,
    target: Option<&Path>,
    task: Task,
    reading: &Reading<'_>,
    ui: &Ui,
) -> Result<(Loaded<T>, Known<T>)> {
    known(load_as::<T>(data, None, reading, ui)?, (data, target), task)
}

/// Data with targets for `task`, from `target` where one is named, else from `data`.
///
/// # Errors
/// When there are no targets, or they are not what the task needs.
pub(super) fn known<T: Element>(
    mut loaded: Loaded<T>,
    (data, target): (&Path, Option<&Path>),
    task: Task,
) -> Result<(Loaded<T>, Known<T>)> {
    let begun = Instant::now();
    let known = match target {
        Some(path) => Known::read(path, loaded.stats.rows, task)?,
        None => Known::of_targets(loaded.take_known(data)?, task)
            .with_context(|| format!("{}", data.display()))?,
    };
    loaded.seconds += begun.elapsed().as_secs_f64();
    Ok((loaded, known))
}

/// Reads sample weights.
///
/// # Errors
/// When there is not one for each row.
pub(super) fn sample_weights(path: Option<&Path>, rows: usize) -> Result<Option<Vec<f64>>> {
    listed(path, "weight", (rows, "rows"))
}

/// Reads offsets: `--offset`, or logarithms of `--exposure`.
///
/// # Errors
/// When there is not one for each row, or an exposure is not above 0.
pub(super) fn offsets(
    offset: Option<&Path>,
    exposure: Option<&Path>,
    rows: usize,
) -> Result<Option<Vec<f64>>> {
    let Some(path) = exposure else {
        return listed(offset, "offset", (rows, "rows"));
    };
    let exposures = listed(exposure, "exposure", (rows, "rows"))?.unwrap_or_default();
    let wrong = exposures.iter().position(|e| !(*e > 0.0 && e.is_finite()));
    if let Some(row) = wrong {
        bail!(
            "{}: expected exposures that are finite and above 0, found {} in row {row} (counted from 0)",
            path.display(),
            exposures[row]
        );
    }
    Ok(Some(exposures.iter().map(|e| e.ln()).collect()))
}

/// Reads penalty factors.
///
/// # Errors
/// When there is not one for each column.
pub(super) fn penalty_factors(path: Option<&Path>, cols: usize) -> Result<Option<Vec<f64>>> {
    listed(path, "penalty factor", (cols, "columns"))
}

/// Reads one number for each of something.
fn listed(
    path: Option<&Path>,
    what: &str,
    (expected, each): (usize, &str),
) -> Result<Option<Vec<f64>>> {
    let Some(path) = path else { return Ok(None) };
    let numbers = io::read_numbers::<f64>(path)?;
    let found = numbers.len();
    ensure!(
        found == expected,
        "{}: expected one {what} for each of the {expected} {each}, found {found}",
        path.display()
    );
    Ok(Some(numbers))
}

/// Reads as many targets as rows.
///
/// # Errors
/// When there is not one for each row.
pub(super) fn read_targets<T: Element>(path: &Path, rows: usize) -> Result<Vec<T>> {
    let targets = io::read_numbers::<T>(path)?;
    let found = targets.len();
    ensure!(
        found == rows,
        "{}: expected one target for each of the {rows} rows, found {found}",
        path.display()
    );
    Ok(targets)
}

impl<T> Loaded<T> {
    /// How a file is read whose columns are to be those of this one.
    pub(super) fn reading_like<'a>(&self, args: &'a ReadArgs) -> Reading<'a> {
        Reading {
            columns: Columns::Exactly(self.stats.cols),
            args,
            first_target: None,
            table: TableOptions {
                schema: Some(self.schema.clone()),
                ..TableOptions::default()
            },
        }
    }

    /// The targets as numbers.
    ///
    /// # Errors
    /// As [`Loaded::take_known`], and when they are text.
    pub(super) fn take_targets(&mut self, data: &Path) -> Result<Vec<T>> {
        match self.take_known(data)? {
            TableTargets::Numbers(numbers) => Ok(numbers),
            TableTargets::Text(texts) => bail!("{}: {}", data.display(), text_targets(&texts)),
        }
    }

    /// The targets, which training cannot do without.
    ///
    /// # Errors
    /// When neither DATA nor `--target` have any.
    pub(super) fn take_known(&mut self, data: &Path) -> Result<TableTargets<T>> {
        match self.targets.take() {
            Some(targets) => Ok(targets),
            None => bail!(
                "{}: expected targets, found a file that holds features only; name them with --target FILE.npy, \
                 or with --target-column NAME where DATA has them",
                data.display()
            ),
        }
    }
}

/// Why texts are no targets of a regression.
pub(super) fn text_targets(texts: &[String]) -> String {
    let first = texts.iter().find(|text| text.parse::<f64>().is_err());
    format!(
        "expected targets that are numbers, for a regression, found the text `{}`; classifiers (logreg, svc) take text",
        first.map_or("", String::as_str)
    )
}
