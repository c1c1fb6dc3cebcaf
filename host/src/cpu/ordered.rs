//! Products of a dense X whose bits are the same on every run and every device.
//!
//! Everything is multiplied and added in the order of [`DenseOrder`], as the GPU's kernels do it, one number after the
//! other: for results that have to agree, not for speed.
//!
//! The rows may be part of a larger matrix ([`Place`]). Sums of floats depend on their order, so a holder of rows goes on
//! where the holder of the rows before them stopped ([`Sums`]); those over the rows of one chunk do not wait for those of
//! another.

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

/// Which rows of a matrix X has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The number of the first.
    pub first: u64,
    /// Rows of the whole matrix.
    pub all: u64,
    /// Whether there is no row after those of X, nor anybody else who has none.
    pub is_last: bool,
}

impl Place {
    /// All of them.
    pub fn whole(rows: usize) -> Place {
        Place {
            first: 0,
            all: rows as u64,
            is_last: true,
        }
    }
}

/// A product with the order of its sums.
struct Walk<'a, T> {
    x: &'a Dense<'a, T>,
    place: Place,
    order: DenseOrder,
    input: Input<'a, T>,
    weights: Option<&'a [T]>,
    shift: T,
}

impl<'a, T: Scalar + Real> Walk<'a, T> {
    fn new(
        (x, place): (&'a Dense<'a, T>, Place),
        order: DenseOrder,
        input: Input<'a, T>,
        terms: &Terms<'a, T>,
    ) -> Self {
        Walk {
            x,
            place,
            order,
            input,
            weights: terms.weights,
            shift: terms.shift.unwrap_or(T::ZERO),
        }
    }

    /// Which row of X the row of this number is.
    fn own(&self, row: u64) -> Option<usize> {
        let own = row.checked_sub(self.place.first)?;
        (own < self.x.rows() as u64).then_some(own as usize)
    }

    /// What a row is multiplied by: `v ⊙ (X·y − shift)`, or `v ⊙ p`. A row that is not there is zero, and so is its weight.
    fn factor(&self, own: Option<usize>) -> T {
        let weight = match (own, self.weights) {
            (None, _) => T::ZERO,
            (Some(row), Some(v)) => v[row],
            (Some(_), None) => <T as Real>::ONE,
        };
        match self.input {
            Input::Product(y) => {
                let dot = own.map_or(T::ZERO, |row| dot(self.x.row(row), y, &self.order));
                (dot - self.shift) * weight
            }
            Input::Given(p) => own.map_or(T::ZERO, |row| weight * p[row]),
        }
    }

    /// Adds a row times its factor, unless somebody else has it. Who has the last rows has those that are not there.
    fn add_row(&self, row: u64, w: &mut [T]) {
        let own = self.own(row);
        match own {
            Some(at) => {
                let factor = self.factor(own);
                for (w, x) in w.iter_mut().zip(self.x.row(at)) {
                    *w = x.fma(factor, *w);
                }
            }
            None if row >= self.place.all && self.place.is_last => {
                let factor = self.factor(None);
                w.iter_mut().for_each(|w| *w = T::ZERO.fma(factor, *w));
            }
            None => {}
        }
    }

    /// Groups of a chunk whose sums are apart.
    fn groups(&self) -> usize {
        match self.order.team {
            TeamSize::Block => 1,
            TeamSize::Lanes(_) => self.order.groups() as usize,
        }
    }

    /// Elements of the sums of one group: those of each team.
    fn of_group(&self) -> usize {
        self.order.teams() as usize * self.x.cols()
    }

    /// Elements of the sums of one chunk.
    fn of_chunk(&self) -> usize {
        self.groups() * self.of_group()
    }

    /// Adds the rows of a chunk, each to the sums of its team.
    fn add_chunk(&self, chunk: u64, sums: &mut [T]) {
        let (len, cols) = (self.of_group(), self.x.cols());
        for group in 0..self.groups() as u64 {
            let from = group as usize * len;
            self.add_group((chunk, group), cols, &mut sums[from..from + len]);
        }
    }

    fn add_group(&self, (chunk, group): (u64, u64), cols: usize, teams: &mut [T]) {
        let (order, place) = (&self.order, &self.place);
        let count = u64::from(order.teams()) as usize;
        let (chunks, group_rows) = (u64::from(order.chunks), order.group_rows());
        let of_block = u64::from(order.groups()) * group_rows;
        // Blocks before the first row of X are somebody else's.
        let before = (place.first / of_block).saturating_sub(chunk) / chunks;
        let mut block = chunk + before * chunks;
        loop {
            let first = block * of_block + group * group_rows;
            // A tile has all its groups' rows, there or not.
            let begins = match order.held {
                Held::Tiles => block * of_block,
                _ => first,
            };
            let is_after = begins >= place.first + self.x.rows() as u64;
            if begins >= place.all || is_after && !place.is_last {
                break;
            }
            for row in first..first + group_rows {
                let team = (row - first) as usize % count;
                self.add_row(row, &mut teams[team * cols..(team + 1) * cols]);
            }
            block += chunks;
        }
    }

    /// What the rows of a chunk come to: its groups' sums, one after the other; of a group, neighbouring teams' together.
    fn sum_of_chunk(&self, sums: &[T]) -> Vec<T> {
        let cols = self.x.cols();
        if cols == 0 {
            return Vec::new();
        }
        let mut groups = sums.chunks(self.of_group()).map(|teams| {
            let mut teams: Vec<Vec<T>> = teams.chunks(cols).map(<[T]>::to_vec).collect();
            while teams.len() > 1 {
                let pairs = teams.chunks(2).map(|pair| {
                    let mut sum = pair[0].clone();
                    add(&mut sum, &pair[1]);
                    sum
                });
                teams = pairs.collect();
            }
            teams.swap_remove(0)
        });
        if let TeamSize::Block = self.order.team {
            return groups.next().expect("a block is one group");
        }
        groups.fold(vec![T::ZERO; cols], |mut sum, group| {
            add(&mut sum, &group);
            sum
        })
    }

    /// All of them: chunk c to sum c modulo [`SLOTS`], then the sums.
    fn total(&self, of_chunk: impl Fn(u64) -> Vec<T> + Sync) -> Vec<T> {
        let zero = || vec![T::ZERO; self.x.cols()];
        let slots = parallel::map(SLOTS as usize, |slot| {
            let chunks = (slot as u64..u64::from(self.order.chunks)).step_by(SLOTS as usize);
            chunks.fold(zero(), |mut sum, chunk| {
                add(&mut sum, &of_chunk(chunk));
                sum
            })
        });
        slots.iter().fold(zero(), |mut total, sum| {
            add(&mut total, sum);
            total
        })
    }

    /// The same where X has all rows.
    fn total_of_all(&self) -> Vec<T> {
        self.total(|chunk| {
            let mut sums = vec![T::ZERO; self.of_chunk()];
            self.add_chunk(chunk, &mut sums);
            self.sum_of_chunk(&sums)
        })
    }
}

/// The sums of `Xᵀ(v ⊙ (X·y − shift))` or `Xᵀ(v ⊙ p)` on their way from the first row to the last, of a matrix whose rows
/// several have.
pub struct Sums<'a, T>(Walk<'a, T>);

impl<'a, T: Scalar + Real> Sums<'a, T> {
    /// Those over the rows of `x`, whose v and p are given; `None` where rows have to be multiplied by [`forward_of`] first,
    /// as by [`transpose`].
    ///
    /// # Panics
    /// When the length of y or p or v does not fit X.
    pub fn of(
        (x, place): (&'a Dense<'a, T>, Place),
        input: Input<'a, T>,
        terms: &Terms<'a, T>,
    ) -> Option<Self> {
        let product = product(x, input);
        terms.check(x.rows(), x.cols());
        let order = order(product, (x, place))?;
        Some(Sums(Walk::new((x, place), order, input, terms)))
    }

    /// Parts that do not wait for each other.
    pub fn chunks(&self) -> usize {
        self.0.order.chunks as usize
    }

    /// Elements of each.
    pub fn of_chunk(&self) -> usize {
        self.0.of_chunk()
    }

    /// Adds the rows of X to the sums of the chunks from `first` on, which are zero before the first row.
    ///
    /// # Panics
    /// When there are not as many whole chunks.
    pub fn add(&self, first: usize, sums: &mut [T]) {
        let len = self.of_chunk().max(1);
        assert!(sums.len().is_multiple_of(len), "sums of whole chunks");
        parallel::for_each_item(sums.chunks_mut(len), |number, sums| {
            self.0.add_chunk((first + number) as u64, sums);
        });
    }

    /// `w = α·sums + β·z`, of the sums of all chunks over all rows.
    ///
    /// # Panics
    /// When the length of the sums, of `w` or z does not fit.
    pub fn finish(&self, sums: &[T], terms: &Terms<'_, T>, w: &mut [T]) {
        let (walk, len) = (&self.0, self.of_chunk());
        assert_eq!(
            w.len(),
            walk.x.cols(),
            "w needs one element per column of X"
        );
        assert!(sums.len() >= len * self.chunks(), "sums of all chunks");
        let total = walk.total(|chunk| {
            let from = chunk as usize * len;
            walk.sum_of_chunk(&sums[from..from + len])
        });
        for (i, (w, sum)) in w.iter_mut().zip(total).enumerate() {
            *w = finish(terms, i, sum, *w);
        }
    }
}

fn product<T: Scalar>(x: &Dense<'_, T>, input: Input<'_, T>) -> Product {
    let (product, fits) = match input {
        Input::Product(y) => (Product::Fused, y.len() == x.cols()),
        Input::Given(p) => (Product::Transposed, p.len() == x.rows()),
    };
    assert!(fits, "y needs one element per column of X, p one per row");
    product
}

fn add<T: Real>(sum: &mut [T], other: &[T]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum = *sum + *other;
    }
}

/// A row times y as a team adds it up: pack q in thread q modulo the team, or, of tiles, as many elements one after the other as a thread
/// has; then over the team.
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
        let part = match order.held {
            Held::Tiles => i / order.tl as usize,
            _ => i / width,
        };
        let sum = &mut sums[part % team * apart + i % apart];
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
    let place = Place::whole(rows);
    match (order(product(x, input), (x, place)), input) {
        _ if rows == 0 => {
            let each = w.iter_mut().enumerate();
            each.for_each(|(i, w)| *w = addend(terms, i, *w));
        }
        (Some(order), _) => {
            let total = Walk::new((x, place), order, input, terms).total_of_all();
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

fn order<T: Scalar>(product: Product, (x, place): (&Dense<'_, T>, Place)) -> Option<DenseOrder> {
    DenseOrder::of(product, place.all, x.cols() as u64, size_of::<T>() as u32)
}

/// `p = α·v ⊙ (X·y − shift) + β·z` with the bits of the GPU.
///
/// # Panics
/// When the length of `y`, `p`, v or z does not fit X.
pub fn forward<T: Scalar + Real>(x: &Dense<'_, T>, y: &[T], terms: &Terms<'_, T>, p: &mut [T]) {
    forward_of((x, Place::whole(x.rows())), y, terms, p);
}

/// [`forward`] over some rows of a matrix; v, z and p are those of these rows.
///
/// # Panics
/// As [`forward`].
pub fn forward_of<T: Scalar + Real>(
    (x, place): (&Dense<'_, T>, Place),
    y: &[T],
    terms: &Terms<'_, T>,
    p: &mut [T],
) {
    assert_eq!(y.len(), x.cols(), "y needs one element per column of X");
    assert_eq!(p.len(), x.rows(), "p needs one element per row of X");
    terms.check(x.rows(), x.rows());
    let order =
        order(Product::Forward, (x, place)).expect("a row is walked in steps, whatever its length");
    let walk = Walk::new((x, place), order, Input::Product(y), terms);
    parallel::for_each_item(p.chunks_mut(ROWS_PER_TASK), |task, p| {
        for (i, p) in p.iter_mut().enumerate() {
            let row = task * ROWS_PER_TASK + i;
            *p = finish(terms, row, walk.factor(Some(row)), *p);
        }
    });
}
