//! Passes over sliced ELLPACK: blocks of rows that hold their entries by rows and by columns.
//!
//! Over compressed rows `w += Xᵀ·p` reads and writes an element of w for every entry, one after the other, and that is what
//! a pass takes. Here a block of some thousand rows has its entries twice. By rows they give
//! `X·y`, by columns `Xᵀ·p`: both are dot products, whose sums stay in registers. Lists of about the same length lie
//! 16 side by side (SELL-C-σ; Kreutzer, Hager, Wellein, Fehske, Bishop, SIAM J. Sci. Comput. 36(5), 2014).
//!
//! - Indices have 16 bits: of columns in a tile of them, of rows in a block. The elements that they choose from stay in the
//!   nearest cache, and an array of 2¹⁶ elements needs no check of bounds.
//! - What pads a list is a zero times an element that is zero: infinite and NaN elements meet only the entries that X has.
//! - Values that are all equal are not stored: sums are multiplied instead.
//! - Lists are cut into pieces, which are added up in T and then in f64. A column of many entries pads nobody's lists.
//! - In f64 one block in four has its entries by rows alone, and adds them to sums of columns one by one: half of the bytes, and
//!   about as long in a cache. It is where a pass waits for memory that this gains.
//!
//! An entry takes 12 bytes in f32, 17.5 in f64 and a little more, or 4 where values are equal, where compressed rows take
//! 4 + size of T. Measured on a core of an EPYC 9004 beside other work (seconds of the processor), 20 entries a row, ns an entry of
//! the fused product in f32, X from memory:
//!
//! | columns | 1,000 | 4,000 | 10,000 | 20,000 | 40,000 | 100,000 |
//! |---|--:|--:|--:|--:|--:|--:|
//! | compressed rows | 1.17 | 1.36 | 1.43 | 1.52 | 1.61 | 2.03 |
//! | by rows and by columns | 0.68 | 0.82 | 0.93 | 1.05 | 1.23 | 1.79 |
//! | the same, equal values | 0.45 | | 0.59 | | | 1.49 |
//! | a plain sum of the compressed rows | 0.44 | 0.43 | 0.40 | 0.39 | 0.40 | 0.42 |
//!
//! The table is of blocks that all have entries twice, 12 bytes. Up to 4,000 columns these come at the rate of the memory; the
//! loops alone take 0.43 and 0.6 ns with 1,000 and 10,000 columns. Beyond 10,000 what bounds a pass is a line of the
//! second-level cache for most elements.
//!
//! Tried and slower with 4,000 and 10,000 columns: values once, and lists of the places of their products (8.3 bytes an
//! entry; 1.3 and 1.15 times as long); rows alone in all blocks, with w entry by entry (1.04 and 1.15 with sums in T, 1.6 and
//! 1.3 in f64). Entries of 8 bytes with row and column, of tiles, take 1.4 and 1.2 times as long with 40,000 and 100,000
//! columns. On an EPYC gathers of 8 and 16 lanes take 1.6 times as long as elements that are loaded one by one and put together in
//! registers, where X is in a cache (`choose.rs` says where they are taken). Without large pages a pass takes 1.2 to 1.5 times as long.

mod choose;
mod made;
mod order;
mod scatter;

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use self::choose::{Choose, Gathered, OneByOne, gathers_pay};
pub use self::made::{Made, equal_value};
pub use self::order::Order;
use self::order::{Block, INDICES, LANES, Part};
use super::chunks;
use super::fused::{ChunkedRows, RowInput, finish_rows, for_each_piece};
use super::lanes::prefetch_elements;
use super::scalar::Scalar;
use super::scratch::{Memory, Pool};
use super::terms::{RowMap, Terms};

/// How many entries ahead of their use are requested.
const AHEAD: usize = 512;

/// A matrix in this form: the order of its entries, and the entries.
#[derive(Debug, Clone, Copy)]
pub struct Sell<'a, T> {
    order: &'a Order,
    indices: &'a [u16],
    values: &'a [T],
}

impl<'a, T: Scalar> Sell<'a, T> {
    /// The matrix of which [`Made::place`] filled the arrays.
    ///
    /// # Panics
    /// When there are not as many indices and values as `order` has entries.
    pub fn new(order: &'a Order, indices: &'a [u16], values: &'a [T]) -> Self {
        assert_eq!(indices.len(), order.entries(), "an index for each entry");
        assert_eq!(values.len(), order.values(), "a value for each entry");
        Sell {
            order,
            indices,
            values,
        }
    }

    fn blocks(&self, rows: Range<usize>) -> &'a [Block] {
        let blocks = self.order.blocks();
        let at = |row| blocks.partition_point(|block| block.rows.start < row);
        &blocks[at(rows.start)..at(rows.end)]
    }

    /// `sums[i] = Σ values·from[indices]` over the lists of a part, added to what is there.
    fn add_dots(&self, part: &Part, from: &[T; INDICES], sums: &mut [f64]) {
        Arch::new().dispatch(AddDots {
            x: *self,
            part,
            from,
            sums,
        });
    }

    /// `sums = X[block]·y`, y as [`Parts::set_y`] lays it out.
    fn multiply_block(&self, block: &Block, y: &[T], sums: &mut [f64]) {
        sums.fill(0.0);
        for (tile, part) in block.by_rows.iter().enumerate() {
            let start = tile * (self.order.width() + 1);
            self.add_dots(part, window(&y[start..]), sums);
        }
    }
}

/// As many elements as indices can choose from.
fn window<T>(elements: &[T]) -> &[T; INDICES] {
    elements
        .first_chunk()
        .expect("vectors are that much longer")
}

/// The same, to be added to.
fn window_mut<T>(elements: &mut [T]) -> &mut [T; INDICES] {
    elements
        .first_chunk_mut()
        .expect("vectors are that much longer")
}

impl<T: Scalar> ChunkedRows<T> for Sell<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.order.shape()
    }

    fn row_chunks(&self) -> usize {
        let blocks = self.order.blocks().len();
        chunks::count(self.order.work()).min(blocks).max(1)
    }

    fn copies(&self) -> usize {
        let (work, cols) = (self.order.work(), self.order.shape().1);
        let bytes = size_of_val(self.indices) + size_of_val(self.values);
        let blocks = self.order.blocks().len();
        chunks::copies(work, bytes, cols).min(blocks).max(1)
    }

    /// The first row of a block, so that chunks have about as much work.
    fn first_row(&self, chunk: usize, chunks: usize) -> usize {
        let rows = self.order.shape().0;
        if chunk == chunks {
            return rows;
        }
        let target = chunks::boundary(self.order.work(), chunk, chunks);
        let blocks = self.order.blocks();
        let found = blocks.partition_point(|block| block.work_before < target);
        blocks.get(found).map_or(rows, |block| block.rows.start)
    }

    /// Rows of whole blocks.
    fn multiply(&self, rows: Range<usize>, y: &[T], products: &mut [f64]) {
        let mut scratch = Scratch::new(self.order);
        let mut parts = scratch.parts::<T>(self.order);
        parts.set_y(self.order, y);
        for block in self.blocks(rows.clone()) {
            let own = block.rows.start - rows.start..block.rows.end - rows.start;
            self.multiply_block(block, parts.y, &mut products[own]);
        }
        scratch.give_back(self.order);
    }

    fn accumulate(
        &self,
        rows: Range<usize>,
        input: RowInput<T>,
        map: RowMap<T>,
        w: &mut [f64],
        _: &Pool,
    ) {
        let mut scratch = Scratch::new(self.order);
        let mut parts = scratch.parts::<T>(self.order);
        if let RowInput::Product(y) = input {
            parts.set_y(self.order, y);
        }
        for block in self.blocks(rows) {
            let products = &mut parts.products[..block.rows.len()];
            match input {
                RowInput::Product(_) => self.multiply_block(block, parts.y, products),
                RowInput::Given(p) => {
                    let own = p[block.rows.clone()].iter();
                    products
                        .iter_mut()
                        .zip(own)
                        .for_each(|(to, p)| *to = (*p).into());
                }
            }
            for ((row, product), factor) in
                block.rows.clone().zip(products).zip(&mut *parts.factors)
            {
                *factor = T::narrow(map.apply(row, *product));
            }
            parts.factors[block.rows.len()] = T::default();
            let tiles = w.chunks_mut(self.order.width());
            if block.by_columns.is_empty() {
                let (factors, sums) = (window(parts.factors), window_mut(parts.sums));
                for (part, w) in block.by_rows.iter().zip(tiles) {
                    self.scatter(part, (factors, &mut *sums), w);
                }
                continue;
            }
            for (part, sums) in block.by_columns.iter().zip(tiles) {
                self.add_dots(part, window(parts.factors), sums);
            }
        }
        scratch.give_back(self.order);
    }

    fn project(&self, y: &[T], terms: &Terms<T>, p: &mut [T]) {
        let chunks = self.row_chunks();
        let pieces = chunks::split_mut(p, chunks, |chunk| self.first_row(chunk, chunks));
        for_each_piece(pieces, |(start, p)| {
            let mut scratch = Scratch::new(self.order);
            let mut parts = scratch.parts::<T>(self.order);
            parts.set_y(self.order, y);
            for block in self.blocks(start..start + p.len()) {
                let products = &mut parts.products[..block.rows.len()];
                self.multiply_block(block, parts.y, products);
                let own = block.rows.start - start..block.rows.end - start;
                // Terms find their elements by the number of the row.
                finish_rows(products, block.rows.start, terms, &mut p[own]);
            }
            scratch.give_back(self.order);
        });
    }
}

/// Memory of one thread's pass.
struct Scratch(Memory);

/// What is in it.
struct Parts<'a, T> {
    /// Products of the rows of a block.
    products: &'a mut [f64],
    /// What columns are multiplied by: an element for each row of a block, and zero.
    factors: &'a mut [T],
    /// Sums of the columns of a tile, of one block: zeros between the blocks.
    sums: &'a mut [T],
    /// y, a zero behind the elements of each tile.
    y: &'a mut [T],
}

impl Scratch {
    fn new(order: &Order) -> Scratch {
        let elements = 3 * INDICES + order.padded_columns();
        let bytes = size_of::<f64>() * (order.longest_block() + elements);
        let memory = order.pool.take(bytes);
        Scratch(memory.expect("memory for y and a block of rows"))
    }

    fn parts<T: Scalar>(&mut self, order: &Order) -> Parts<'_, T> {
        let products = size_of::<f64>() * order.longest_block();
        let (products, rest) = self.0.bytes().split_at_mut(products);
        let elements = rest.len() / size_of::<T>() * size_of::<T>();
        let elements: &mut [T] = bytemuck::cast_slice_mut(&mut rest[..elements]);
        let (factors, rest) = elements.split_at_mut(INDICES);
        let (sums, y) = rest.split_at_mut(INDICES);
        sums[..=order.width()].fill(T::default());
        Parts {
            products: bytemuck::cast_slice_mut(products),
            factors,
            sums,
            y,
        }
    }

    fn give_back(self, order: &Order) {
        order.pool.give_back(self.0);
    }
}

impl<T: Scalar> Parts<'_, T> {
    fn set_y(&mut self, order: &Order, y: &[T]) {
        let width = order.width();
        for (to, from) in self.y.chunks_mut(width + 1).zip(y.chunks(width)) {
            to[..from.len()].copy_from_slice(from);
            to[width] = T::default();
        }
    }
}

/// `sums[i] += Σ values·from[indices]` over the lists of a part.
struct AddDots<'a, T> {
    x: Sell<'a, T>,
    part: &'a Part,
    from: &'a [T; INDICES],
    sums: &'a mut [f64],
}

impl<T: Scalar> WithSimd for AddDots<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match gathers_pay() {
            true => self.run::<S, Gathered>(simd),
            false => self.run::<S, OneByOne>(simd),
        }
    }
}

impl<T: Scalar> AddDots<'_, T> {
    #[inline(always)]
    fn run<S: Simd, C: Choose>(self, simd: S) {
        let Sell {
            order,
            indices,
            values,
        } = self.x;
        let (owners, _) = self.part.owners.as_chunks::<LANES>();
        let mut start = self.part.start;
        for (&len, owners) in self.part.lens.iter().zip(owners) {
            let entries = start..start + LANES * usize::from(len);
            start = entries.end;
            let (dots, scale) = match order.equal_value() {
                None => {
                    let dots = dots::<T, S, C>(simd, (indices, values), entries, self.from);
                    (dots, 1.0)
                }
                Some(value) => {
                    let sums = plain_sums::<T, S, C>(simd, indices, entries, self.from);
                    (sums, value)
                }
            };
            for (&owner, dot) in owners.iter().zip(dots) {
                // Nobody owns what pads a slice.
                if let Some(sum) = self.sums.get_mut(usize::from(owner)) {
                    *sum += scale * dot.into();
                }
            }
        }
    }
}

/// Of lists that lie side by side.
#[inline(always)]
fn dots<T: Scalar, S: Simd, C: Choose>(
    simd: S,
    (indices, values): (&[u16], &[T]),
    entries: Range<usize>,
    from: &[T; INDICES],
) -> [T; LANES] {
    let mut sums = [T::splat(simd, T::default()); LANES];
    let (steps, _) = indices[entries.clone()].as_chunks::<LANES>();
    let (factors, _) = values[entries.clone()].as_chunks::<LANES>();
    for (step, (chosen, factors)) in steps.iter().zip(factors).enumerate() {
        let ahead = entries.start + step * LANES + AHEAD;
        prefetch_elements::<_, { 2 * LANES }>(indices, ahead);
        prefetch_elements::<_, LANES>(values, ahead);
        let chosen = C::choose::<T, S>(chosen, from);
        let pairs = T::vectors::<S>(factors)
            .iter()
            .zip(T::vectors::<S>(&chosen));
        for (sum, (&factor, &chosen)) in sums.iter_mut().zip(pairs) {
            *sum = T::mul_add(simd, factor, chosen, *sum);
        }
    }
    elements(&sums)
}

/// [`dots`] with ones.
#[inline(always)]
fn plain_sums<T: Scalar, S: Simd, C: Choose>(
    simd: S,
    indices: &[u16],
    entries: Range<usize>,
    from: &[T; INDICES],
) -> [T; LANES] {
    let mut sums = [T::splat(simd, T::default()); LANES];
    let (steps, _) = indices[entries.clone()].as_chunks::<LANES>();
    for (step, chosen) in steps.iter().enumerate() {
        let ahead = entries.start + step * LANES + 2 * AHEAD;
        prefetch_elements::<_, { 2 * LANES }>(indices, ahead);
        let chosen = C::choose::<T, S>(chosen, from);
        for (sum, &chosen) in sums.iter_mut().zip(T::vectors::<S>(&chosen)) {
            *sum = T::add(simd, *sum, chosen);
        }
    }
    elements(&sums)
}

#[inline(always)]
fn elements<T: Scalar, S: Simd>(vectors: &[T::Vector<S>; LANES]) -> [T; LANES] {
    let mut elements = [T::default(); LANES];
    let places = T::vectors_mut::<S>(&mut elements).iter_mut();
    places.zip(vectors).for_each(|(to, from)| *to = *from);
    elements
}
