//! Seeded numbers and matrices.

use std::collections::BTreeSet;
use std::fmt;

use ndarray::Array2;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use warpfuse::matrix::{CsrMatrix, Element, Features, csr_from_parts};
use warpfuse::ops::Number;

/// Which columns of which rows hold an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// All of them, stored row by row.
    Dense,
    /// This many in each row, at columns that are equally likely.
    PerRow(usize),
    /// This many in each row, column j with a probability that falls with 1/(j + 1).
    Zipf(usize),
    /// This many in every second row, none in the others.
    EveryOther(usize),
    /// 0, 1, 2, …, this many, 0, 1, … from row to row.
    Growing(usize),
    /// Three in each row, but this many in the middle one.
    Giant(usize),
    /// Every column of the middle row, and nothing else.
    OneFull,
    /// One in each row, all in the same column.
    OneColumn,
    /// None at all.
    Empty,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Dense => f.write_str("dense"),
            Pattern::PerRow(count) => write!(f, "per_row_{count}"),
            Pattern::Zipf(count) => write!(f, "zipf_{count}"),
            Pattern::EveryOther(count) => write!(f, "every_other_row_{count}"),
            Pattern::Growing(count) => write!(f, "growing_to_{count}"),
            Pattern::Giant(count) => write!(f, "giant_row_{count}"),
            Pattern::OneFull => f.write_str("one_full_row"),
            Pattern::OneColumn => f.write_str("one_column"),
            Pattern::Empty => f.write_str("no_entries"),
        }
    }
}

impl Pattern {
    /// Entries of row `row` of an m × n matrix.
    pub fn row_len(self, row: usize, rows: usize, cols: usize) -> usize {
        let middle = row == rows / 2;
        let wanted = match self {
            Pattern::Dense => cols,
            Pattern::PerRow(count) | Pattern::Zipf(count) => count,
            Pattern::EveryOther(count) => count * (row % 2),
            Pattern::Growing(count) => row % (count + 1),
            Pattern::Giant(count) if middle => count,
            Pattern::Giant(_) => 3,
            Pattern::OneFull if middle => cols,
            Pattern::OneColumn => 1,
            Pattern::OneFull | Pattern::Empty => 0,
        };
        wanted.min(cols)
    }
}

/// A source of numbers that gives the same ones for the same seed, on every machine.
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Starts from `seed`.
    pub fn new(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * f64::powi(2.0, -53)
    }

    /// Uniform in (−1, 1).
    pub fn signed(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
    }

    /// Uniform in 0..n, n > 0.
    pub fn below(&mut self, n: usize) -> usize {
        // The unit interval is open above, but the product may round up to n.
        ((self.unit() * n as f64) as usize).min(n - 1)
    }

    /// Uniform among −limit, …, limit.
    pub fn integer(&mut self, limit: usize) -> f64 {
        self.below(2 * limit + 1) as f64 - limit as f64
    }

    /// 0..n with a probability that falls with 1/(j + 1), by inversion of its continuous counterpart.
    pub fn zipf(&mut self, n: usize) -> usize {
        let j = ((n + 1) as f64).powf(self.unit()) - 1.0;
        (j as usize).min(n - 1)
    }

    /// `count` of the columns 0..n in ascending order.
    fn columns(&mut self, pattern: Pattern, count: usize, n: usize) -> Vec<u32> {
        if pattern == Pattern::OneColumn {
            return vec![n as u32 / 2];
        }
        if 2 * count > n {
            return self.select(count, n);
        }
        let mut chosen = BTreeSet::new();
        while chosen.len() < count {
            let zipf = matches!(pattern, Pattern::Zipf(_));
            chosen.insert(if zipf { self.zipf(n) } else { self.below(n) } as u32);
        }
        chosen.into_iter().collect()
    }

    /// Selection sampling: Knuth, *The Art of Computer Programming* 2, §3.4.2, algorithm S.
    fn select(&mut self, count: usize, n: usize) -> Vec<u32> {
        let mut chosen = Vec::with_capacity(count);
        for column in 0..n {
            let (missing, left) = (count - chosen.len(), n - column);
            if self.below(left) < missing {
                chosen.push(column as u32);
            }
        }
        chosen
    }
}

/// An m × n matrix with entries where `pattern` says and values from `value`.
pub fn matrix<T: Number>(
    random: &mut Random,
    (rows, cols): (usize, usize),
    pattern: Pattern,
    mut value: impl FnMut(&mut Random) -> f64,
) -> Features<T> {
    let mut next = |random: &mut Random| <T as Element>::from_f64(value(random));
    if pattern == Pattern::Dense {
        let x = Array2::from_shape_simple_fn((rows, cols), || next(random));
        return Features::Dense(x);
    }
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..rows {
        let count = pattern.row_len(row, rows, cols);
        indices.extend(random.columns(pattern, count, cols));
        values.extend((0..count).map(|_| next(random)));
        offsets.push(indices.len() as u64);
    }
    Features::Sparse(csr((rows, cols), offsets, indices, values))
}

fn csr<T: Element>(
    shape: (usize, usize),
    offsets: Vec<u64>,
    indices: Vec<u32>,
    values: Vec<T>,
) -> CsrMatrix<T> {
    csr_from_parts(shape, offsets, indices, values).expect("columns ascend and lie below n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparse(pattern: Pattern, shape: (usize, usize)) -> CsrMatrix<f64> {
        match matrix(&mut Random::new(7), shape, pattern, Random::signed) {
            Features::Sparse(x) => x,
            _ => panic!("{pattern} is sparse"),
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let (mut a, mut b) = (Random::new(1), Random::new(1));
        assert!((0..100).all(|_| a.unit() == b.unit()));
        assert_ne!(Random::new(1).unit(), Random::new(2).unit());
        assert_eq!(
            sparse(Pattern::Zipf(5), (50, 90)),
            sparse(Pattern::Zipf(5), (50, 90))
        );
    }

    #[test]
    fn rows_have_the_lengths_that_their_pattern_names() {
        let lengths = |pattern, shape: (usize, usize)| -> Vec<usize> {
            let x = sparse(pattern, shape);
            x.outer_iterator().map(|row| row.nnz()).collect()
        };
        assert_eq!(lengths(Pattern::PerRow(9), (3, 5)), [5, 5, 5]);
        assert_eq!(lengths(Pattern::EveryOther(2), (4, 5)), [0, 2, 0, 2]);
        assert_eq!(lengths(Pattern::Growing(2), (5, 9)), [0, 1, 2, 0, 1]);
        assert_eq!(lengths(Pattern::Giant(40), (3, 50)), [3, 40, 3]);
        assert_eq!(lengths(Pattern::OneFull, (3, 6)), [0, 6, 0]);
        assert_eq!(lengths(Pattern::Empty, (2, 6)), [0, 0]);
    }

    #[test]
    fn zipf_prefers_the_first_columns_and_reaches_the_last() {
        let mut random = Random::new(3);
        let mut counts = [0; 10];
        (0..20_000).for_each(|_| counts[random.zipf(10)] += 1);
        assert!(counts[0] > 4 * counts[5] && counts[9] > 0, "{counts:?}");
    }

    #[test]
    fn integers_are_whole_and_reach_both_limits() {
        let mut random = Random::new(5);
        let drawn: BTreeSet<i64> = (0..1000).map(|_| random.integer(2) as i64).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [-2, -1, 0, 1, 2]);
    }
}
