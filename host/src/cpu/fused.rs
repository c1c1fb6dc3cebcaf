//! `w = α·Xᵀ(v ⊙ (X·y − shift)) + β·z`, multi-threaded, X read once; and its two halves.
//!
//! Rows are cut into chunks by the shape of X alone. A chunk adds into its own copy of w, in f64, and
//! the copies are added in the order of the chunks: the same bits come out whatever the number of
//! threads. (Another processor, with other vector widths, may round differently.) A chunk is small
//! enough for load balance and large enough that the copies are little compared with X: see
//! [`RowMatrix`]'s implementations for how many there are.
//!
//! Elements that are NaN or infinite take part as IEEE 754 says. An entry that is not stored is not
//! multiplied: an infinite y meets only the columns that X has.

use std::ops::Range;

use super::chunks;
use super::scalar::Scalar;
use super::scratch::Pool;
use super::terms::{RowMap, Terms};
use crate::parallel;

/// Where the elements that go into Xᵀ come from.
#[derive(Debug, Clone, Copy)]
pub enum RowInput<'a, T> {
    /// The product of the row with this y of n elements: one pass over X does both.
    Product(&'a [T]),
    /// This p of m elements.
    Given(&'a [T]),
}

/// How a storage of X is cut into chunks of rows, and what is done with one chunk.
pub trait ChunkedRows<T>: Sync {
    /// Number of rows and columns.
    fn shape(&self) -> (usize, usize);
    /// Chunks for a pass that writes one element per row.
    fn row_chunks(&self) -> usize;
    /// Chunks for a pass that adds into w, hence copies of w.
    fn copies(&self) -> usize;
    /// The first row of chunk `chunk` of `chunks`; m for `chunk == chunks`.
    fn first_row(&self, chunk: usize, chunks: usize) -> usize;
    /// `products[i] = X[rows.start + i]·y`.
    fn multiply(&self, rows: Range<usize>, y: &[T], products: &mut [f64]);
    /// `w += X[rows]ᵀ · map(input[rows])`; `pool` has memory to borrow.
    fn accumulate(
        &self,
        rows: Range<usize>,
        input: RowInput<T>,
        map: RowMap<T>,
        w: &mut [f64],
        pool: &Pool,
    );

    /// `w = finish(Xᵀ · map(input))`. One pass, unless the storage knows better.
    fn transpose(&self, input: RowInput<T>, terms: &Terms<T>, w: &mut [T], ws: &mut Workspace)
    where
        T: Scalar,
    {
        in_one_pass(self, input, terms, w, ws);
    }
    /// `p = finish(map(X·y))`.
    fn project(&self, y: &[T], terms: &Terms<T>, p: &mut [T])
    where
        T: Scalar,
    {
        by_rows(self, y, terms, p);
    }
}

/// A matrix that the passes run over: [`Csr`](super::Csr) or [`Dense`](super::Dense). Sealed.
pub trait RowMatrix<T>: ChunkedRows<T> {}

impl<T, X: ChunkedRows<T>> RowMatrix<T> for X {}

/// Memory that passes need besides their arguments, kept from call to call.
///
/// Holds the copies of w: at most 64, and never more than X itself takes; and up to 2 MB for each thread. A
/// solver keeps one, so that an iteration allocates nothing large.
#[derive(Debug, Default)]
pub struct Workspace {
    copies: Vec<f64>,
    pub(super) pool: Pool,
}

impl Workspace {
    /// An empty workspace; it grows with the first pass.
    pub fn new() -> Self {
        Self::default()
    }

    /// Memory for `count` copies of w, `stride` elements apart.
    pub(super) fn copies(&mut self, count: usize, stride: usize) -> &mut [f64] {
        self.borrow(count, stride).0
    }

    /// As [`copies`](Self::copies), and the pool.
    fn borrow(&mut self, count: usize, stride: usize) -> (&mut [f64], &Pool) {
        let len = count * stride;
        if self.copies.len() < len {
            // A fresh allocation is zeroed by the threads that touch it first; growing would copy.
            self.copies = vec![0.0; len];
        }
        (&mut self.copies[..len], &self.pool)
    }
}

/// `w = α·Xᵀ(v ⊙ (X·y − shift)) + β·z`: n elements from `y` of n elements, reading X once.
///
/// A dense X whose rows do not fit in cache is read twice instead.
///
/// # Panics
/// When the length of `y`, `w`, v or z does not fit X.
///
/// ```
/// use warpfuse::cpu::{Dense, Terms, Workspace, fused};
/// let x = Dense::new(2, 2, 2, &[1.0, 2.0, 0.0, 3.0]).unwrap();
/// let mut w = [0.0; 2];
/// let terms = Terms { weights: Some(&[2.0, 1.0]), ..Terms::scaled(1.0) };
/// fused(&x, &[1.0, 1.0], &terms, &mut w, &mut Workspace::new());
/// assert_eq!(w, [6.0, 21.0]);
/// ```
pub fn fused<T: Scalar>(
    x: &impl RowMatrix<T>,
    y: &[T],
    terms: &Terms<T>,
    w: &mut [T],
    workspace: &mut Workspace,
) {
    let (rows, cols) = x.shape();
    assert_eq!(y.len(), cols, "y needs one element per column of X");
    assert_eq!(w.len(), cols, "w needs one element per column of X");
    terms.check(rows, cols);
    x.transpose(RowInput::Product(y), terms, w, workspace);
}

/// `w = α·Xᵀ(v ⊙ p) + β·z`: n elements from `p` of m elements. The shift belongs to X·y: p has been shifted already.
///
/// # Panics
/// When the length of `p`, `w`, v or z does not fit X.
pub fn transposed<T: Scalar>(
    x: &impl RowMatrix<T>,
    p: &[T],
    terms: &Terms<T>,
    w: &mut [T],
    workspace: &mut Workspace,
) {
    let (rows, cols) = x.shape();
    assert_eq!(p.len(), rows, "p needs one element per row of X");
    assert_eq!(w.len(), cols, "w needs one element per column of X");
    terms.check(rows, cols);
    let terms = Terms {
        shift: None,
        ..*terms
    };
    x.transpose(RowInput::Given(p), &terms, w, workspace);
}

/// `p = α·v ⊙ (X·y − shift) + β·z`: m elements from `y` of n elements.
///
/// # Panics
/// When the length of `y`, `p`, v or z does not fit X.
pub fn forward<T: Scalar>(x: &impl RowMatrix<T>, y: &[T], terms: &Terms<T>, p: &mut [T]) {
    let (rows, cols) = x.shape();
    assert_eq!(y.len(), cols, "y needs one element per column of X");
    assert_eq!(p.len(), rows, "p needs one element per row of X");
    terms.check(rows, rows);
    x.project(y, terms, p);
}

pub(super) fn in_one_pass<T: Scalar, X: ChunkedRows<T> + ?Sized>(
    x: &X,
    input: RowInput<T>,
    terms: &Terms<T>,
    w: &mut [T],
    workspace: &mut Workspace,
) {
    let chunks = x.copies();
    // Eight more than needed, so that no two copies share a cache line.
    let stride = w.len() + 8;
    let (copies, pool) = workspace.borrow(chunks, stride);
    let map = terms.row_map();
    let cols = w.len();
    let run = |chunk: usize, copy: &mut [f64]| {
        let copy = &mut copy[..cols];
        copy.fill(0.0);
        let rows = x.first_row(chunk, chunks)..x.first_row(chunk + 1, chunks);
        x.accumulate(rows, input, map, copy, pool);
    };
    if chunks == 1 {
        run(0, copies);
    } else {
        parallel::for_each_item(copies.chunks_mut(stride), run);
    }
    combine(copies, stride, terms, w);
}

/// Adds up the copies of w in their order and finishes.
pub(super) fn combine<T: Scalar>(copies: &mut [f64], stride: usize, terms: &Terms<T>, w: &mut [T]) {
    let cols = w.len();
    let pieces = chunks::count(copies.len());
    let pieces = chunks::split_mut(w, pieces, |piece| chunks::boundary(cols, piece, pieces));
    let copies = &*copies;
    let run = |(start, w): (usize, &mut [T])| {
        // Through a buffer that stays in the nearest cache.
        let mut sums = [0.0; 512];
        for (block, w) in w.chunks_mut(sums.len()).enumerate() {
            let offset = start + block * sums.len();
            let sums = &mut sums[..w.len()];
            sums.fill(0.0);
            for copy in copies.chunks(stride) {
                add_to(sums, &copy[offset..]);
            }
            terms.finish(sums, offset, w);
        }
    };
    for_each_piece(pieces, run);
}

fn add_to(sums: &mut [f64], values: &[f64]) {
    sums.iter_mut()
        .zip(values)
        .for_each(|(sum, value)| *sum += value);
}

pub(super) fn by_rows<T: Scalar, X: ChunkedRows<T> + ?Sized>(
    x: &X,
    y: &[T],
    terms: &Terms<T>,
    p: &mut [T],
) {
    let chunks = x.row_chunks();
    let pieces = chunks::split_mut(p, chunks, |chunk| x.first_row(chunk, chunks));
    for_each_piece(pieces, |(start, p)| {
        let mut products = [0.0; 256];
        for (block, p) in p.chunks_mut(products.len()).enumerate() {
            let first = start + block * products.len();
            let products = &mut products[..p.len()];
            x.multiply(first..first + p.len(), y, products);
            finish_rows(products, first, terms, p);
        }
    });
}

/// `p = α·map(products) + β·z` for the rows from `first` on.
pub(super) fn finish_rows<T: Scalar>(
    products: &mut [f64],
    first: usize,
    terms: &Terms<T>,
    p: &mut [T],
) {
    let map = terms.row_map();
    for (i, product) in products.iter_mut().enumerate() {
        *product = map.apply(first + i, *product);
    }
    terms.finish(products, first, p);
}

/// Runs over the pieces, on the calling thread when there is only one.
pub(super) fn for_each_piece<T: Send>(
    pieces: Vec<(usize, &mut [T])>,
    run: impl Fn((usize, &mut [T])) + Send + Sync,
) {
    parallel::for_each_item(pieces, |_, piece| run(piece));
}
