//! What the data are like: rows, columns, entries.

use serde::Serialize;
use warpfuse_figures::{Axis, Figure, Tone};

use super::number::Unit;
use super::page::{Fact, Mood, Report, Section, Table, Value};
use super::target::{self, TargetFacts};
use crate::learning::Targets;
use crate::matrix::{
    ColumnMoments, Element, Features, MatrixStats, RowSample, Schema, Storage, frequencies,
    frequencies_in,
};

/// Columns that are named, of each kind.
const NAMED: usize = 10;
/// Entries that are counted by column, where there are more than twice as many.
const ENTRIES: f64 = 5e5;
/// Share of a column's Σx² below which its centred square sum counts as 0; solvers take such columns for constant.
const CONSTANT: f64 = 1e-15;

/// What the data are like.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DataFacts {
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
    /// Stored entries.
    pub nnz: u64,
    /// Stored entries over m·n.
    pub density: f64,
    /// Whether X is dense.
    pub dense: bool,
    /// Entries of the shortest row, of the mean row and of the longest.
    pub row_entries: (u64, f64, u64),
    /// Rows without entries.
    pub empty_rows: usize,
    /// Rows by their entries: 0, 1, 2 to 3, 4 to 7, …
    pub row_length_histogram: Vec<u64>,
    /// Columns without an entry other than 0.
    pub empty_columns: usize,
    /// The first ten of them.
    pub first_empty_columns: Vec<usize>,
    /// Columns of one value other than 0.
    pub constant_columns: usize,
    /// The first ten of them.
    pub first_constant_columns: Vec<usize>,
    /// Rows whose entries are counted by column, where they are not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_rows: Option<usize>,
    /// Columns by their stored entries: 0, 1, 2 to 3, 4 to 7, …; none of dense data.
    pub column_frequency_histogram: Vec<u64>,
    /// The ten columns with the most stored entries, and how many; none of dense data.
    pub busiest_columns: Vec<(usize, u64)>,
    /// Least and greatest standard deviation of columns that are not constant.
    pub deviations: Option<(f64, f64)>,
    /// What is learnt, where there is anything.
    pub target: Option<TargetFacts>,
}

impl DataFacts {
    /// Of features, whose entries are counted, and sums over their columns.
    pub fn of<T: Element>(
        features: &Features<T>,
        stats: &MatrixStats,
        moments: &ColumnMoments,
    ) -> DataFacts {
        let rows = stats.rows as f64;
        let (mut empty, mut constant) = (Vec::new(), Vec::new());
        let mut deviations: Option<(f64, f64)> = None;
        for (column, (sum, squares)) in moments.sum.iter().zip(&moments.sum_of_squares).enumerate()
        {
            let centred = squares - sum * sum / rows.max(1.0);
            match *squares {
                0.0 => empty.push(column),
                squares if centred <= CONSTANT * squares => constant.push(column),
                _ => {
                    let deviation = (centred / rows).sqrt();
                    let (least, most) = deviations.unwrap_or((deviation, deviation));
                    deviations = Some((least.min(deviation), most.max(deviation)));
                }
            }
        }
        let (frequencies, counted_rows) = counted(features, stats);
        DataFacts {
            rows: stats.rows,
            cols: stats.cols,
            nnz: stats.nnz,
            density: stats.density(),
            dense: stats.dense,
            row_entries: (stats.min_row, stats.mean_row, stats.max_row),
            empty_rows: stats.empty_rows,
            row_length_histogram: stats.row_length_histogram.clone(),
            empty_columns: empty.len(),
            constant_columns: constant.len(),
            first_empty_columns: first(empty),
            first_constant_columns: first(constant),
            counted_rows,
            column_frequency_histogram: by_powers(&frequencies),
            busiest_columns: busiest(&frequencies),
            deviations,
            target: None,
        }
    }

    /// With targets.
    #[must_use]
    pub fn with_target<T: Element>(mut self, targets: Targets<'_, T>) -> DataFacts {
        self.target = TargetFacts::of(targets);
        self
    }
}

/// Stored entries of each column; of a sample of the rows, whose number comes with them, where entries are very many. None
/// of dense data.
fn counted<T: Element>(features: &Features<T>, stats: &MatrixStats) -> (Vec<u64>, Option<usize>) {
    let Storage::Sparse(x) = features.storage() else {
        return (Vec::new(), None);
    };
    let wanted = (ENTRIES / stats.mean_row.max(1.0)) as usize;
    match RowSample::of_about(wanted, stats.rows) {
        RowSample::All => (frequencies(x), None),
        RowSample::Of(rows, _) => (frequencies_in(x, &rows), Some(rows.len())),
    }
}

fn first(mut columns: Vec<usize>) -> Vec<usize> {
    columns.truncate(NAMED);
    columns
}

fn by_powers(counts: &[u64]) -> Vec<u64> {
    let mut bins = Vec::new();
    for count in counts {
        let bin = (u64::BITS - count.leading_zeros()) as usize;
        if bins.len() <= bin {
            bins.resize(bin + 1, 0);
        }
        bins[bin] += 1;
    }
    bins
}

fn busiest(counts: &[u64]) -> Vec<(usize, u64)> {
    let mut all: Vec<(usize, u64)> = counts.iter().copied().enumerate().collect();
    let order = |a: &(usize, u64), b: &(usize, u64)| b.1.cmp(&a.1).then(a.0.cmp(&b.0));
    if all.len() > NAMED {
        all.select_nth_unstable_by(NAMED, order);
        all.truncate(NAMED);
    }
    all.sort_unstable_by(order);
    all
}

/// The name of a column, or its number as the file has it.
pub fn column_name(schema: &Schema, column: usize) -> String {
    let number = || format!("column {}", schema.label(column));
    schema.name(column).unwrap_or_else(number)
}

/// Such as `2–3`.
fn power_names(bins: usize) -> Vec<String> {
    let name = |bin: usize| match bin {
        0 => "0".to_owned(),
        1 => "1".to_owned(),
        bin => format!("{}–{}", 1_u64 << (bin - 1), (1_u128 << bin) - 1),
    };
    (0..bins).map(name).collect()
}

fn histogram(name: &str, title: &str, counts: &[u64], (of, along): (&str, &str)) -> Figure {
    let values: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
    Figure::new(name, title)
        .summary(format!("{of} by {along}"))
        .x(Axis::categories(along, power_names(counts.len())))
        .y(Axis::linear(of))
        .bars("", Tone::First, &values)
}

/// The section on the data.
pub(super) fn section(facts: &DataFacts, names: &Schema) -> Section {
    let mut figures: Vec<Figure> = facts.target.iter().filter_map(target::figure).collect();
    if !facts.dense {
        let of_rows = ("rows", "stored entries of a row");
        figures.push(histogram(
            "row-lengths",
            "Row lengths",
            &facts.row_length_histogram,
            of_rows,
        ));
        let along = match facts.counted_rows {
            None => "stored entries of a column".to_owned(),
            Some(rows) => format!("stored entries of a column in {rows} of the rows"),
        };
        let of_columns = ("columns", &*along);
        let counts = &facts.column_frequency_histogram;
        figures.push(histogram(
            "column-frequencies",
            "Column frequencies",
            counts,
            of_columns,
        ));
    }
    let entries = match facts.counted_rows {
        None => "entries".to_owned(),
        Some(rows) => format!("entries in {rows} of the rows"),
    };
    let mut busiest = Table::new("Columns with the most entries", ["column", &entries]);
    for (column, count) in &facts.busiest_columns {
        let name = Value::Text(column_name(names, *column));
        busiest
            .rows
            .push(vec![name, Value::Number(*count as f64, Unit::Count)]);
    }
    let mut section = Section::new("Data").facts(lines(facts));
    for (kind, columns) in [
        ("Empty", &facts.first_empty_columns),
        ("Constant", &facts.first_constant_columns),
    ] {
        if !columns.is_empty() {
            let list: Vec<String> = columns
                .iter()
                .map(|column| column_name(names, *column))
                .collect();
            section = section.note(format!(
                "{kind} columns, the first of them: {}.",
                list.join(", ")
            ));
        }
    }
    section.figures(figures).table(busiest)
}

fn lines(facts: &DataFacts) -> Vec<Fact> {
    let (least, mean, most) = facts.row_entries;
    let mut lines = vec![
        Fact::count("rows", facts.rows as u64),
        Fact::count("columns", facts.cols as u64),
        Fact::count("stored entries", facts.nnz),
        Fact::number("density", facts.density, Unit::Share),
        Fact::count("empty columns", facts.empty_columns as u64),
        Fact::count("constant columns", facts.constant_columns as u64),
    ];
    if !facts.dense {
        lines.push(Fact::count("entries of the shortest row", least));
        lines.push(Fact::number("entries of the mean row", mean, Unit::Plain));
        lines.push(Fact::count("entries of the longest row", most));
        lines.push(Fact::count("empty rows", facts.empty_rows as u64));
    }
    if let Some((least, most)) = facts.deviations {
        lines.push(Fact::number(
            "least deviation of a column",
            least,
            Unit::Plain,
        ));
        lines.push(Fact::number(
            "greatest deviation of a column",
            most,
            Unit::Plain,
        ));
    }
    lines.extend(facts.target.iter().flat_map(target::facts));
    lines
}

/// What of the data is worth a look.
pub(super) fn judge(report: &mut Report, facts: &DataFacts, standardized: bool) {
    const APART: f64 = 1e3;
    if facts.rows == 0 {
        report.verdict(
            Mood::Bad,
            "No rows",
            "There is nothing to learn from, and no figure is defined.",
        );
    }
    let idle = facts.empty_columns + facts.constant_columns;
    if idle > 0 && facts.rows > 1 {
        let text = format!(
            "Of {} columns {} are empty and {} constant: they do not tell rows apart, and beside an intercept their \
             coefficients are 0.",
            facts.cols, facts.empty_columns, facts.constant_columns
        );
        report.verdict(Mood::Look, "Columns without information", text);
    }
    if let Some((least, most)) = facts.deviations
        && most > APART * least
        && !standardized
    {
        let text = "Deviations of columns differ by more than a thousand: --standardize makes fits faster, and coefficients \
                    comparable.";
        report.verdict(Mood::Look, "Columns of very different scale", text);
    }
}
