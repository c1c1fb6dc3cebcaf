//! Products of a dense X whose bits are the same on every run and every device.
//!
//! Everything is multiplied and added in the order of [`DenseOrder`], as the GPU's kernels do it, one number after the
//! other: for results that have to agree, not for speed.

use gpu_kernels::Real;
use gpu_kernels::cta::WARP;
use gpu_kernels::fused::{DenseOrder, Held, Product, SLOTS, TeamSize};

use super::matrix::Dense;
use super::scalar::Scalar;
use super::terms::{Addend, Terms};
use crate::parallel;

/// Rows that one task multiplies.
const ROWS_PER_TASK: usize = 256;

/// What rows are multiplied by besides X.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a, T> {
    /// y of n elements: `w = α·Xᵀ(v ⊙ (X·y − shift)) + β·z`.
    Product(&'a [T]),
    /// p of m elements: `w = α·Xᵀ(v ⊙ p) + β·z`.
    Given(&'a [T]),
}

/// A product with the order of its sums.
struct Walk<'a, T> {
    x: &'a Dense<'a, T>,
    order: DenseOrder,
    input: Input<'a, T>,
    weights: Option<&'a [T]>,
    shift: T,
}

impl<'a, T: Scalar + Real> Walk<'a, T> {
    fn new(
        x: &'a Dense<'a, T>,
        order: DenseOrder,
        input: Input<'a, T>,
        terms: &Terms<'a, T>,
    ) -> Self {
        Walk {
            x,
            order,
            input,
            weights: terms.weights,
            shift: terms.shift.unwrap_or(T::ZERO),
        }
    }

    /// What a row of X is multiplied by: `v ⊙ (X·y − shift)`, or `v ⊙ p`. A row that is not there is zero, and so is
    /// its weight.
    fn factor(&self, row: u64) -> T {
        let there = (row < self.x.rows() as u64).then_some(row as usize);
        let weight = match (there, self.weights) {
            (None, _) => T::ZERO,
            (Some(row), Some(v)) => v[row],
            (Some(_), None) => <T as Real>::ONE,
        };
        match self.input {
            Input::Product(y) => {
                let dot = there.map_or(T::ZERO, |row| dot(self.x.row(row), y, &self.order));
                (dot - self.shift) * weight
            }
            Input::Given(p) => there.map_or(T::ZERO, |row| weight * p[row]),
        }
    }

    /// Adds a row times its factor.
    fn add_row(&self, row: u64, w: &mut [T]) {
        let factor = self.factor(row);
        if row < self.x.rows() as u64 {
            for (w, x) in w.iter_mut().zip(self.x.row(row as usize)) {
                *w = x.fma(factor, *w);
            }
        } else {
            w.iter_mut().for_each(|w| *w = T::ZERO.fma(factor, *w));
        }
    }

    /// What a chunk of rows comes to: its groups' sums, one after the other.
    fn chunk(&self, chunk: u64) -> Vec<T> {
        if let TeamSize::Block = self.order.team {
            return self.group(chunk, 0);
        }
        let mut sum = vec![T::ZERO; self.x.cols()];
        for group in 0..u64::from(self.order.groups()) {
            add(&mut sum, &self.group(chunk, group));
        }
        sum
    }

    /// What the rows of a group come to: those of each team by themselves, then neighbouring teams' together.
    fn group(&self, chunk: u64, group: u64) -> Vec<T> {
        let (order, all) = (&self.order, self.x.rows() as u64);
        let mut teams = vec![vec![T::ZERO; self.x.cols()]; order.teams() as usize];
        let (groups, group_rows) = (u64::from(order.groups()), order.group_rows());
        let mut block = chunk;
        loop {
            let of_block = block * groups * group_rows;
            let first = of_block + group * group_rows;
            // A tile has all its groups' rows, there or not.
            let begins = if order.held == Held::Tiles {
                of_block
            } else {
                first
            };
            if begins >= all {
                break;
            }
            for row in first..first + group_rows {
                let team = (row - first) as usize % teams.len();
                self.add_row(row, &mut teams[team]);
            }
            block += u64::from(order.chunks);
        }
        while teams.len() > 1 {
            let pairs = teams.chunks(2).map(|pair| {
                let mut sum = pair[0].clone();
                add(&mut sum, &pair[1]);
                sum
            });
            teams = pairs.collect();
        }
        teams.swap_remove(0)
    }

    /// All of them: chunk c to sum c modulo [`SLOTS`], then the sums.
    fn total(&self) -> Vec<T> {
        let zero = || vec![T::ZERO; self.x.cols()];
        let slots = parallel::map(SLOTS as usize, |slot| {
            let chunks = (slot as u64..u64::from(self.order.chunks)).step_by(SLOTS as usize);
            chunks.fold(zero(), |mut sum, chunk| {
                add(&mut sum, &self.chunk(chunk));
                sum
            })
        });
        slots.iter().fold(zero(), |mut total, sum| {
            add(&mut total, sum);
            total
        })
    }
}

fn add<T: Real>(sum: &mut [T], other: &[T]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum = *sum + *other;
    }
}

/// A row times y as a team adds it up: pack q in thread q modulo the team, then over the team.
fn dot<T: Real>(row: &[T], y: &[T], order: &DenseOrder) -> T {
    let team = order.team.threads(order.threads.unwrap_or(WARP)) as usize;
    let width = order.width as usize;
    // Of each thread, for a ring of each element of a pack.
    let apart = if order.held == Held::Ring { width } else { 1 };
    let mut sums = vec![T::ZERO; team * apart];
    let step = team * order.tl as usize;
    // A row is zero up to the end of the last thread's last pack.
    for i in 0..row.len().next_multiple_of(step) {
        let (x, y) = match row.get(i) {
            Some(x) => (*x, y[i]),
            None => (T::ZERO, T::ZERO),
        };
        let column = if order.held == Held::Tiles {
            0
        } else {
            i / width
        };
        let sum = &mut sums[column % team * apart + i % apart];
        *sum = x.fma(y, *sum);
    }
    match order.team {
        TeamSize::Lanes(_) => butterfly(&mut sums),
        TeamSize::Block if apart == 1 => {
            let warps = sums.chunks_mut(WARP as usize).map(butterfly);
            warps.fold(T::ZERO, |sum, warp| sum + warp)
        }
        TeamSize::Block => {
            let in_turn = |values: &[T]| values.iter().fold(T::ZERO, |sum, value| sum + *value);
            let mut threads: Vec<T> = sums.chunks(apart).map(in_turn).collect();
            let warps: Vec<T> = threads.chunks_mut(WARP as usize).map(butterfly).collect();
            in_packs(&warps, apart)
        }
    }
}

/// Warps' sums as a ring adds them: eight at most, in packs, then the elements of the pack.
fn in_packs<T: Real>(warps: &[T], width: usize) -> T {
    const MOST_WARPS: usize = 8;
    let mut pack = vec![T::ZERO; width];
    for warp in 0..MOST_WARPS {
        let sum = warps.get(warp).copied().unwrap_or(T::ZERO);
        pack[warp % width] = sum.fma(<T as Real>::ONE, pack[warp % width]);
    }
    pack.into_iter().fold(T::ZERO, |sum, value| sum + value)
}

/// Neighbouring lanes' sums as a butterfly adds them, the farthest first.
fn butterfly<T: Real>(sums: &mut [T]) -> T {
    let mut distance = sums.len() / 2;
    while distance > 0 {
        for lane in 0..distance {
            sums[lane] = sums[lane] + sums[lane + distance];
        }
        distance /= 2;
    }
    sums[0]
}

/// `α·value + β·z` of one element, with one rounding after that of β·z.
fn finish<T: Real>(terms: &Terms<'_, T>, i: usize, value: T, before: T) -> T {
    terms.alpha.fma(value, addend(terms, i, before))
}

fn addend<T: Real>(terms: &Terms<'_, T>, i: usize, before: T) -> T {
    match terms.addend {
        Addend::None => T::ZERO,
        Addend::Vector { beta, z } => beta * z[i],
        Addend::InPlace { beta } => beta * before,
    }
}

/// `w = α·Xᵀ(v ⊙ (X·y − shift)) + β·z`, or `w = α·Xᵀ(v ⊙ p) + β·z`, with the bits of the GPU. Rows that no kernel holds
/// are multiplied by [`forward`] first, as there.
///
/// # Panics
/// When the length of y or p, `w`, v or z does not fit X.
pub fn transpose<T: Scalar + Real>(
    x: &Dense<'_, T>,
    input: Input<'_, T>,
    terms: &Terms<'_, T>,
    w: &mut [T],
) {
    let (rows, cols) = (x.rows(), x.cols());
    assert_eq!(w.len(), cols, "w needs one element per column of X");
    terms.check(rows, cols);
    let (product, len) = match input {
        Input::Product(y) => (Product::Fused, y.len() == cols),
        Input::Given(p) => (Product::Transposed, p.len() == rows),
    };
    assert!(len, "y needs one element per column of X, p one per row");
    match (order(product, x), input) {
        _ if rows == 0 => {
            let each = w.iter_mut().enumerate();
            each.for_each(|(i, w)| *w = addend(terms, i, *w));
        }
        (Some(order), _) => {
            let total = Walk::new(x, order, input, terms).total();
            for (i, (w, sum)) in w.iter_mut().zip(total).enumerate() {
                *w = finish(terms, i, sum, *w);
            }
        }
        (None, Input::Product(y)) => {
            let mut p = vec![T::ZERO; rows];
            let first = Terms {
                alpha: <T as Real>::ONE,
                addend: Addend::None,
                ..*terms
            };
            forward(x, y, &first, &mut p);
            let then = Terms {
                weights: None,
                shift: None,
                ..*terms
            };
            transpose(x, Input::Given(&p), &then, w);
        }
        (None, Input::Given(_)) => unreachable!("panels hold any number of columns"),
    }
}

fn order<T>(product: Product, x: &Dense<'_, T>) -> Option<DenseOrder> {
    DenseOrder::of(
        product,
        x.rows() as u64,
        x.cols() as u64,
        size_of::<T>() as u32,
    )
}

/// `p = α·v ⊙ (X·y − shift) + β·z` with the bits of the GPU.
///
/// # Panics
/// When the length of `y`, `p`, v or z does not fit X.
pub fn forward<T: Scalar + Real>(x: &Dense<'_, T>, y: &[T], terms: &Terms<'_, T>, p: &mut [T]) {
    assert_eq!(y.len(), x.cols(), "y needs one element per column of X");
    assert_eq!(p.len(), x.rows(), "p needs one element per row of X");
    terms.check(x.rows(), x.rows());
    let order = order(Product::Forward, x).expect("a row is walked in steps, whatever its length");
    let walk = Walk::new(x, order, Input::Product(y), terms);
    parallel::for_each_item(p.chunks_mut(ROWS_PER_TASK), |task, p| {
        for (i, p) in p.iter_mut().enumerate() {
            let row = task * ROWS_PER_TASK + i;
            *p = finish(terms, row, walk.factor(row as u64), *p);
        }
    });
}
