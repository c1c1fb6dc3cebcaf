//! Which rows are held out when.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use thiserror::Error;

use crate::parallel;

/// A partition of the rows into k folds. Fold f is held out once, while the model is fitted to the others.
///
/// Nothing is copied: the rows that are held out get weight 0 ([`Folds::training_weights`]), so that one matrix
/// on the device serves all folds.
///
/// ```
/// use warpfuse::learning::Folds;
/// let folds = Folds::shuffled(10, 3, 7)?;
/// let sizes: Vec<usize> = (0..3).map(|fold| folds.held_out(fold).len()).collect();
/// assert_eq!(sizes, [4, 3, 3]);
/// # Ok::<(), warpfuse::learning::FoldError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folds {
    fold_of: Vec<u32>,
    count: usize,
}

/// Why rows cannot be cut into folds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FoldError {
    /// Too few or too many folds.
    #[error(
        "expected at least 2 folds and at most one for each of the {rows} samples, found {folds}"
    )]
    Count {
        /// Folds requested.
        folds: usize,
        /// Samples.
        rows: usize,
    },
    /// A row of a fold that there is not.
    #[error("expected folds below {folds}, found {fold} for row {row} (all counted from 0)")]
    Outside {
        /// The row.
        row: usize,
        /// Its fold.
        fold: u32,
        /// Folds there are.
        folds: usize,
    },
    /// Fewer groups than folds.
    #[error("expected at least as many groups as folds ({folds}), found {groups}")]
    Groups {
        /// Folds requested.
        folds: usize,
        /// Different groups.
        groups: usize,
    },
    /// A class that cannot be in the training part of every fold.
    #[error(
        "expected at least 2 samples of each class, found {found} of class {class} (counted from 0); then some fold would be trained without it"
    )]
    RareClass {
        /// The class.
        class: u32,
        /// Its samples.
        found: usize,
    },
}

impl Folds {
    /// `folds` folds of rows drawn at random: sizes differ by at most 1, the larger ones come first.
    ///
    /// # Errors
    /// [`FoldError::Count`] for fewer than 2 folds or more than rows.
    pub fn shuffled(rows: usize, folds: usize, seed: u64) -> Result<Self, FoldError> {
        check_count(rows, folds)?;
        Ok(deal(folds, seed, (rows, vec![0]), |_| 0))
    }

    /// `folds` folds of consecutive rows, as scikit-learn's `KFold` without shuffling.
    ///
    /// # Errors
    /// As [`Folds::shuffled`].
    pub fn consecutive(rows: usize, folds: usize) -> Result<Self, FoldError> {
        check_count(rows, folds)?;
        let (size, larger) = (rows / folds, rows % folds);
        let lengths = (0..folds).map(|fold| size + usize::from(fold < larger));
        let fold_of = lengths
            .enumerate()
            .flat_map(|(fold, length)| std::iter::repeat_n(fold as u32, length));
        Ok(Folds {
            fold_of: fold_of.collect(),
            count: folds,
        })
    }

    /// `folds` folds of rows drawn at random, with the samples of each class (`classes[row]`) spread evenly:
    /// sizes, and numbers of samples of a class, differ by at most 1.
    ///
    /// # Errors
    /// As [`Folds::shuffled`], and [`FoldError::RareClass`] for a class of one sample.
    pub fn stratified(classes: &[u32], folds: usize, seed: u64) -> Result<Self, FoldError> {
        check_count(classes.len(), folds)?;
        let distinct = classes.iter().max().map_or(0, |class| *class as usize + 1);
        let mut counts = vec![0; distinct];
        classes
            .iter()
            .for_each(|class| counts[*class as usize] += 1);
        if let Some(class) = counts.iter().position(|count| *count == 1) {
            let (class, found) = (class as u32, 1);
            return Err(FoldError::RareClass { class, found });
        }
        // Classes go on where those before them end.
        let begin = counts.iter().scan(0, |dealt, count| {
            let first = *dealt % folds;
            *dealt += count;
            Some(first as u32)
        });
        let of_row = |row: usize| classes[row] as usize;
        Ok(deal(folds, seed, (classes.len(), begin.collect()), of_row))
    }

    /// The folds that somebody else has drawn: `fold_of[row]` holds the row out, from 0 to `folds` − 1.
    ///
    /// # Errors
    /// [`FoldError::Count`] as [`Folds::shuffled`], [`FoldError::Outside`] for a row of a fold that there is not.
    pub fn of_rows(fold_of: Vec<u32>, folds: usize) -> Result<Self, FoldError> {
        check_count(fold_of.len(), folds)?;
        match fold_of.iter().position(|fold| *fold as usize >= folds) {
            None => Ok(Folds {
                fold_of,
                count: folds,
            }),
            Some(row) => Err(FoldError::Outside {
                row,
                fold: fold_of[row],
                folds,
            }),
        }
    }

    /// `folds` folds that rows of one group (`groups[row]`) are in together: the largest groups are dealt first, each to the
    /// fold with the fewest rows, as scikit-learn's `GroupKFold` deals them; groups of equal size in random order.
    ///
    /// # Errors
    /// [`FoldError::Count`] for fewer than 2 folds or more than rows, [`FoldError::Groups`] for more than groups.
    ///
    /// ```
    /// use warpfuse::learning::Folds;
    /// let folds = Folds::grouped(&[1, 1, 2, 2, 3, 1], 2, 0)?;
    /// assert_eq!(folds.held_out(0), [0, 1, 5]);
    /// # Ok::<(), warpfuse::learning::FoldError>(())
    /// ```
    pub fn grouped(groups: &[u64], folds: usize, seed: u64) -> Result<Self, FoldError> {
        check_count(groups.len(), folds)?;
        let mut rows_of: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (row, group) in groups.iter().enumerate() {
            rows_of.entry(*group).or_default().push(row);
        }
        let lists: Vec<Vec<usize>> = rows_of.into_values().collect();
        if lists.len() < folds {
            let groups = lists.len();
            return Err(FoldError::Groups { folds, groups });
        }
        let mut order = permutation(lists.len(), seed);
        order.sort_by_key(|list| std::cmp::Reverse(lists[*list].len()));
        let mut sizes = vec![0; folds];
        let mut fold_of = vec![0; groups.len()];
        for list in order {
            let fold = (0..folds).min_by_key(|fold| sizes[*fold]).unwrap_or(0);
            sizes[fold] += lists[list].len();
            for row in &lists[list] {
                fold_of[*row] = fold as u32;
            }
        }
        Ok(Folds {
            fold_of,
            count: folds,
        })
    }

    /// k.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The rows that fold `fold` holds out, ascending.
    pub fn held_out(&self, fold: usize) -> Vec<usize> {
        let rows = self.fold_of.iter().enumerate();
        rows.filter(|(_, of)| **of as usize == fold)
            .map(|(row, _)| row)
            .collect()
    }

    /// m.
    pub fn rows(&self) -> usize {
        self.fold_of.len()
    }

    /// The fold that holds out each row.
    pub(in crate::learning) fn of_each_row(&self) -> &[u32] {
        &self.fold_of
    }

    /// Sample weights with which fold `fold` is scored: those given (1 if none are), and 0 for the rows that it
    /// is trained on.
    ///
    /// # Panics
    /// When there are not as many weights as rows.
    pub fn held_out_weights(&self, fold: usize, weights: Option<&[f64]>) -> Vec<f64> {
        self.masked(weights, |of| of == fold)
    }

    /// Sample weights with which fold `fold` is trained: those given (1 if none are), and 0 for the rows that
    /// it holds out.
    ///
    /// # Panics
    /// When there are not as many weights as rows.
    pub fn training_weights(&self, fold: usize, weights: Option<&[f64]>) -> Vec<f64> {
        self.masked(weights, |of| of != fold)
    }

    /// The weights of the rows in the folds that `keep` chooses, 0 for the others.
    fn masked(&self, weights: Option<&[f64]>, keep: impl Fn(usize) -> bool + Sync) -> Vec<f64> {
        assert!(
            weights.is_none_or(|weights| weights.len() == self.fold_of.len()),
            "one weight per row"
        );
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let keeps = |row: usize| keep(self.fold_of[row] as usize);
        parallel::filled(self.fold_of.len(), |row| match keeps(row) {
            true => weight(row),
            false => 0.0,
        })
    }
}

fn check_count(rows: usize, folds: usize) -> Result<(), FoldError> {
    if (2..=rows).contains(&folds) && u32::try_from(folds).is_ok() {
        Ok(())
    } else {
        Err(FoldError::Count { folds, rows })
    }
}

/// Deals rows in random order to the folds in turn: each of its groups has turns of its own, from fold `next[group]` on.
fn deal(
    folds: usize,
    seed: u64,
    (rows, mut next): (usize, Vec<u32>),
    group_of: impl Fn(usize) -> usize,
) -> Folds {
    let mut fold_of = vec![0; rows];
    in_random_order(rows, seed, |row| {
        let turn = &mut next[group_of(row)];
        fold_of[row] = *turn;
        *turn = if *turn as usize + 1 == folds {
            0
        } else {
            *turn + 1
        };
    });
    Folds {
        fold_of,
        count: folds,
    }
}

/// Hands on the rows in random order: in half the memory where 32 bits number them, as most of the time goes there.
fn in_random_order(rows: usize, seed: u64, mut each: impl FnMut(usize)) {
    match u32::try_from(rows) {
        Ok(end) => shuffled((0..end).collect(), seed)
            .into_iter()
            .for_each(|row| each(row as usize)),
        Err(_) => permutation(rows, seed).into_iter().for_each(each),
    }
}

/// The rows in random order.
fn permutation(rows: usize, seed: u64) -> Vec<usize> {
    shuffled((0..rows).collect(), seed)
}

/// In random order (Fisher and Yates; a 64-bit product instead of a remainder).
fn shuffled<I>(mut order: Vec<I>, seed: u64) -> Vec<I> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for last in (1..order.len()).rev() {
        let draw = (u128::from(random.next_u64()) * (last as u128 + 1)) >> 64;
        order.swap(last, draw as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(folds: &Folds) -> Vec<usize> {
        (0..folds.count())
            .map(|fold| folds.held_out(fold).len())
            .collect()
    }

    #[test]
    fn every_row_is_held_out_once() {
        for rows in [2, 7, 64, 1001] {
            for folds in [Folds::shuffled(rows, 2, 1), Folds::consecutive(rows, 2)] {
                let folds = folds.expect("two folds");
                let mut all: Vec<usize> = (0..2).flat_map(|fold| folds.held_out(fold)).collect();
                all.sort_unstable();
                assert_eq!(all, (0..rows).collect::<Vec<_>>());
            }
        }
        assert_eq!(
            sizes(&Folds::consecutive(11, 4).expect("folds")),
            [3, 3, 3, 2]
        );
        assert_eq!(Folds::consecutive(5, 2).expect("folds").held_out(1), [3, 4]);
    }

    #[test]
    fn folds_of_others_are_checked() {
        let folds = Folds::of_rows(vec![1, 0, 1], 2).expect("two folds");
        assert_eq!(folds.held_out(1), [0, 2]);
        let outside = FoldError::Outside {
            row: 1,
            fold: 2,
            folds: 2,
        };
        assert_eq!(Folds::of_rows(vec![1, 2, 0], 2), Err(outside));
        assert!(Folds::of_rows(vec![0], 1).is_err());
    }

    #[test]
    fn seeds_decide() {
        let of = |seed| Folds::shuffled(100, 5, seed).expect("folds");
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_ne!(of(1).held_out(0), (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn classes_are_spread_evenly() {
        let classes: Vec<u32> = (0..103)
            .map(|row| u32::from(row % 10 == 0) + u32::from(row % 3 == 0))
            .collect();
        let folds = Folds::stratified(&classes, 5, 3).expect("folds");
        for class in 0..3 {
            let of_fold = |fold: usize| {
                folds
                    .held_out(fold)
                    .iter()
                    .filter(|row| classes[**row] == class)
                    .count()
            };
            let counts: Vec<usize> = (0..5).map(of_fold).collect();
            let (most, least) = (
                counts.iter().max().expect("five"),
                counts.iter().min().expect("five"),
            );
            assert!(most - least <= 1, "{counts:?} of class {class}");
        }
        assert_eq!(sizes(&folds), [21, 21, 21, 20, 20]);
    }

    #[test]
    fn held_out_rows_have_no_weight() {
        let folds = Folds::consecutive(4, 2).expect("folds");
        assert_eq!(folds.training_weights(0, None), [0.0, 0.0, 1.0, 1.0]);
        let weights = [0.5, 2.0, 3.0, 0.0];
        assert_eq!(
            folds.training_weights(1, Some(&weights)),
            [0.5, 2.0, 0.0, 0.0]
        );
    }

    #[test]
    fn what_makes_no_folds_is_refused() {
        for folds in [0, 1, 4] {
            assert_eq!(
                Folds::shuffled(3, folds, 0),
                Err(FoldError::Count { folds, rows: 3 })
            );
        }
        let rare = Folds::stratified(&[0, 0, 1, 0], 2, 0);
        assert_eq!(rare, Err(FoldError::RareClass { class: 1, found: 1 }));
    }
}
