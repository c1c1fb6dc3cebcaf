//! Fits over the columns that have entries, where most have none: text whose words are hashed to 2²⁰ numbers, one file of many.
//!
//! A column without entries has no part in any row: its coefficient stays where it begins, at 0, whatever the loss and the
//! penalty. Vectors of all columns are what such a fit would take its time for. So a
//! [`ResidentDataset`](super::ResidentDataset) keeps X a second time without those columns, for fits alone; whoever looks at
//! the data, or applies a model to them, sees all columns.
//!
//! | what | over the columns with entries |
//! |---|---|
//! | masks, penalty factors, sums over columns | theirs |
//! | a start | theirs; one that is not 0 elsewhere needs all columns |
//! | figures of coefficients, the model | put back among zeros |
//! | a checkpoint | names how many they are |
//!
//! Not where sums repeat on every device, whose order depends on n, nor where members of a group share the rows: each sees
//! columns of its own.

use super::FitError;
use super::given::check_rows_and_columns;
use super::options::{Evaluate, FitOptions};
use super::row_moments::RowMoments;
use super::weights::Weights;
use crate::matrix::{ColumnMoments, SeenColumns};

/// Columns below which vectors of them stay in a cache.
const FEW_COLUMNS: usize = 1 << 16;
/// Entries that a solver reads in the time that a column's place in its vectors takes.
const ENTRIES_PER_COLUMN: u64 = 16;

/// When fits leave out columns without entries: given n, the entries, and the columns that have some.
pub(super) type Policy = fn(usize, u64, usize) -> bool;

/// Where they are more than what is done with the entries: else a fit is not made much shorter. With no column `seen` it says
/// whether to look.
pub(super) fn pays(cols: usize, entries: u64, seen: usize) -> bool {
    let without = (cols - seen) as u64;
    cols >= FEW_COLUMNS && entries > 0 && entries <= ENTRIES_PER_COLUMN * without
}

/// Whether a fit with these options has all it needs in the columns with entries. Options that do not fit X are left to
/// whoever says what is wrong with them.
pub(super) fn suits(seen: &SeenColumns, rows: usize, options: &FitOptions<'_>) -> bool {
    let is_whole = |len: Option<usize>| len.is_none_or(|len| len == seen.cols());
    let starts = options.start.map_or(&[][..], |(coef, _)| coef);
    check_rows_and_columns(options, (rows, seen.cols())).is_ok()
        && is_whole(options.columns.map(<[bool]>::len))
        && is_whole(options.moments.map(|of| of.columns.sum.len()))
        && starts
            .iter()
            .all(|coef| is_whole(Some(coef.len())) && seen.has_all_of(coef))
}

/// What `fit` makes of these options over the columns with entries, with coefficients of all columns.
///
/// # Errors
/// Those of `fit`.
pub(super) fn over<R>(
    seen: &SeenColumns,
    options: FitOptions<'_>,
    fit: impl FnOnce(FitOptions<'_>) -> Result<(Weights, R), FitError>,
) -> Result<(Weights, R), FitError> {
    let columns = options.columns.map(|flags| seen.gather(flags));
    let factors = options.penalty_factors.map(|all| seen.gather(all));
    let moments = options.moments.map(|all| sums_of(seen, all));
    let start = options.start.map(|(coef, b)| (lists_of(seen, coef), b));
    let (mut evaluate, mut watch) = (options.evaluate, options.watch);
    let mut of_all = evaluate
        .as_mut()
        .map(|evaluate| move |coef: &[Vec<f64>], b: &[f64]| evaluate(&among_zeros(seen, coef), b));
    let own = FitOptions {
        sample_weight: options.sample_weight,
        columns: columns.as_deref(),
        moments: moments.as_ref(),
        offset: options.offset,
        penalty_factors: factors.as_deref(),
        start: start.as_ref().map(|(coef, b)| (&coef[..], *b)),
        evaluate: of_all.as_mut().map(|of_all| of_all as &mut Evaluate<'_>),
        patience: options.patience,
        checkpoint: options.checkpoint,
        watch: match &mut watch {
            Some(watch) => Some(&mut **watch),
            None => None,
        },
    };
    let (weights, rest) = fit(own)?;
    Ok((of_all_columns(Some(seen), weights), rest))
}

/// Coefficients of all columns, of those that a fit read.
pub(super) fn of_all_columns(seen: Option<&SeenColumns>, weights: Weights) -> Weights {
    match seen {
        Some(seen) => Weights {
            coef: among_zeros(seen, &weights.coef),
            intercept: weights.intercept,
        },
        None => weights,
    }
}

/// Sums over the columns with entries.
pub(super) fn sums_of(seen: &SeenColumns, all: &RowMoments) -> RowMoments {
    RowMoments {
        columns: ColumnMoments {
            sum: seen.gather(&all.columns.sum),
            sum_of_squares: seen.gather(&all.columns.sum_of_squares),
        },
        rows: all.rows,
    }
}

/// Lists of the columns with entries.
pub(super) fn lists_of(seen: &SeenColumns, all: &[Vec<f64>]) -> Vec<Vec<f64>> {
    all.iter().map(|list| seen.gather(list)).collect()
}

fn among_zeros(seen: &SeenColumns, own: &[Vec<f64>]) -> Vec<Vec<f64>> {
    own.iter().map(|list| seen.scatter(list)).collect()
}

#[cfg(test)]
mod tests {
    use super::pays;

    #[test]
    fn columns_are_left_out_where_they_are_much_of_a_fit() {
        assert!(pays(29_890_095, 5_700_000, 1_200_000), "a part of kddb");
        assert!(pays(1 << 20, 2_000_000, 150_000), "hashed text");
        assert!(!pays(1 << 20, 200_000_000, 600_000), "much of it");
        assert!(!pays(29_890_095, 566_345_888, 0), "kddb: not looked at");
        assert!(!pays(1_355_191, 9_097_916, 1_355_191), "news20");
        assert!(!pays(47_236, 100_000, 10_000), "vectors in a cache");
        assert!(!pays(1 << 20, 0, 0), "no entry at all");
    }
}
