//! The form made of compressed rows, by all cores.

use std::cmp::Reverse;
use std::ops::Range;

use super::order::{Block, LANES, NOBODY, Order, Part};
use crate::cpu::matrix::Csr;
use crate::cpu::scalar::Scalar;
use crate::cpu::scratch::Pool;
use crate::parallel;
use crate::process;

/// Bytes of the elements for the rows of a block, at least: half of the nearest cache, as entries pass through it besides.
const BLOCK_BYTES: usize = 16 << 10;
/// The same at most, where there are many columns: a second-level cache holds it with other things.
const MOST_BLOCK_BYTES: usize = 64 << 10;
/// Entries of a column in a block that repay the access to its sum.
const ENTRIES_PER_SUM: usize = 4;
/// Entries of a block, unless a row has more.
const MOST_ENTRIES: usize = 1 << 19;
/// Bytes of the elements for the columns of a tile, at most: what the nearest cache holds besides.
const TILE_BYTES: usize = 24 << 10;
/// The same where rows would have too few entries in such a tile: in the second-level cache. With 100,000 columns and 20 entries a
/// row a pass takes 0.9 of the time with 57 KB instead of 24, and as long with 100; with 20,000 and 40,000 it takes longer from 50 on.
const MOST_TILE_BYTES: usize = 96 << 10;
/// Entries of a row in a tile that repay the access to its sum.
const ENTRIES_PER_TILE: usize = 3;
/// Entries of a list that are added up in T; longer lists are several pieces.
const PIECE: usize = 128;
/// Of this many blocks that follow each other, [`once`] have their entries by rows alone.
const ROUND: usize = 4;

/// How many blocks of a round have their entries by rows alone, where they store values of `element` bytes: they save of the
/// memory's time what they take longer in the cores. One number for every processor, as the order of the additions is.
///
/// On 16 threads of a Xeon of the fifth generation, percent of a plain sum of X's arrays in turns with it, 20 entries a row (2026-11-27):
///
/// | columns | 1,000 | 4,000 | 10,000 | 20,000 | 40,000 | 100,000 |
/// |---|--:|--:|--:|--:|--:|--:|
/// | f32, none | 73 | 71 | 70 | 61 | 51 | 43 |
/// | f32, one | 69 | 70 | 67 | 60 | 47 | 36 |
/// | f32, two | 67 | 65 | 61 | 56 | 45 | 32 |
/// | f64, none | 62 | 61 | 55 | 48 | 46 | 34 |
/// | f64, one | 65 | 63 | 56 | 49 | 46 | 30 |
/// | f64, two | 64 | 65 | 57 | 51 | 44 | 29 |
///
/// On one core of an EPYC 9004 a pass of f32 takes up to 1.06 times as long with one as with none. Where elements are loaded
/// one by one, on a Xeon of an earlier generation, it took 0.96, 0.90 and 0.77 of the time (1,000, 4,000 and 10,000 columns).
const fn once(element: usize) -> usize {
    match element {
        4 => 0,
        _ => 1,
    }
}

/// The form before it is placed where products read it.
pub struct Made<T> {
    order: Order,
    /// Those of each block: of [`Block::by_rows`], and then of [`Block::by_columns`], where there are any.
    arrays: Vec<Vec<Arrays<T>>>,
}

/// The entries of a part.
#[derive(Default)]
struct Arrays<T> {
    indices: Vec<u16>,
    values: Vec<T>,
}

/// Row in its block, column in its tile, value.
type Entry<T> = (u16, u16, T);

impl<T: Scalar> Made<T> {
    /// Of `x`, whose columns may stand in any order, and twice. Takes as much memory again as the form has.
    pub fn of(x: &Csr<'_, T>) -> Made<T> {
        let width = tile_width(x);
        let equal_value = equal_value(x.values());
        let bounds = bounds(x);
        let blocks = parallel::map_items(bounds, |number, rows| {
            block(x, (number, rows), (width, equal_value.is_none()))
        });
        let (blocks, arrays): (Vec<Block>, Vec<_>) = blocks.into_iter().unzip();
        let mut order = Order {
            shape: (x.rows(), x.cols()),
            width,
            blocks,
            entries: 0,
            work: 0,
            equal_value,
            pool: Pool::default(),
        };
        for (block, arrays) in order.blocks.iter_mut().zip(&arrays) {
            let parts = block.by_rows.iter_mut().chain(&mut block.by_columns);
            for (part, arrays) in parts.zip(arrays) {
                part.start = order.entries;
                order.entries += arrays.indices.len();
            }
            block.work_before = order.work;
            let ends = [block.rows.start, block.rows.end].map(|row| x.offsets()[row] as usize);
            order.work += ends[1] - ends[0] + block.rows.len();
        }
        Made { order, arrays }
    }

    /// Where entries are to lie, and how many there are.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// Writes all entries, and lets go of its own.
    ///
    /// # Panics
    /// When there are not as many places as [`Order::entries`] and [`Order::values`] say.
    pub fn place(self, indices: &mut [u16], values: &mut [T]) -> Order {
        let Made { order, arrays } = self;
        assert_eq!(indices.len(), order.entries(), "an index for each entry");
        assert_eq!(values.len(), order.values(), "a value for each entry");
        // Elements are chosen from all over, and entries are read in one go: neither leaves room for a table of small pages.
        process::prefer_large_pages(indices.as_mut_ptr().cast(), size_of_val(indices));
        process::prefer_large_pages(values.as_mut_ptr().cast(), size_of_val(values));
        let (mut indices, mut values) = (indices, values);
        let places = arrays.into_iter().map(|arrays| {
            let count = |of: fn(&Arrays<T>) -> usize| arrays.iter().map(of).sum();
            let own = (
                take(&mut indices, count(|part| part.indices.len())),
                take(&mut values, count(|part| part.values.len())),
            );
            (arrays, own)
        });
        parallel::for_each_item(places, |_, (arrays, (mut indices, mut values))| {
            for part in arrays {
                take(&mut indices, part.indices.len()).copy_from_slice(&part.indices);
                take(&mut values, part.values.len()).copy_from_slice(&part.values);
            }
        });
        order
    }
}

/// Cuts `count` elements off the front.
fn take<'a, V>(rest: &mut &'a mut [V], count: usize) -> &'a mut [V] {
    rest.split_off_mut(..count)
        .expect("as many as all parts have")
}

/// Columns of a tile: tiles are about equally wide.
fn tile_width<T>(x: &Csr<'_, T>) -> usize {
    let [least, most] = [TILE_BYTES, MOST_TILE_BYTES].map(|bytes| bytes / size_of::<T>());
    let wanted = x.cols().saturating_mul(ENTRIES_PER_TILE) / per_row(x);
    let tiles = x.cols().div_ceil(wanted.clamp(least, most)).max(1);
    x.cols().div_ceil(tiles).max(1)
}

/// Entries of a row, on average.
fn per_row<T>(x: &Csr<'_, T>) -> usize {
    (x.values().len() / x.rows().max(1)).max(1)
}

/// Rows of a block, at most.
fn block_rows<T>(x: &Csr<'_, T>) -> usize {
    let [least, most] = [BLOCK_BYTES, MOST_BLOCK_BYTES].map(|bytes| bytes / size_of::<T>());
    let wanted = x.cols().saturating_mul(ENTRIES_PER_SUM) / per_row(x);
    wanted.clamp(least, most)
}

/// The rows of each block.
fn bounds<T>(x: &Csr<'_, T>) -> Vec<Range<usize>> {
    let (most, offsets) = (block_rows(x), x.offsets());
    let mut bounds = Vec::new();
    let mut start = 0;
    while start < x.rows() {
        let last = offsets[start] + MOST_ENTRIES as u64;
        let rows = &offsets[start + 1..x.rows().min(start + most) + 1];
        let rows = rows.partition_point(|&end| end <= last).max(1);
        bounds.push(start..start + rows);
        start += rows;
    }
    bounds
}

/// The value that all entries have, if sums that overflow without it overflow with it too.
pub fn equal_value<T: Scalar>(values: &[T]) -> Option<f64> {
    let first = *values.first()?;
    let value: f64 = first.into();
    let is_harmless = value.is_finite() && value.abs() >= 1.0;
    let all = || parallel::position(values, |value| *value != first).is_none();
    (is_harmless && all()).then_some(value)
}

/// A block, and the entries of its parts.
fn block<T: Scalar>(
    x: &Csr<'_, T>,
    (number, rows): (usize, Range<usize>),
    (width, stores_values): (usize, bool),
) -> (Block, Vec<Arrays<T>>) {
    let tiles = entries(x, rows.clone(), width);
    let count = rows.len();
    let by_rows = tiles.iter().map(|tile| {
        let of = |&(row, column, value): &Entry<T>| (row, (column, value));
        sliced(tile, of, (count, width), stores_values)
    });
    let is_once = stores_values && number % ROUND < once(size_of::<T>());
    let is_once = is_once && tiles.iter().all(|tile| has_short_columns(tile, width));
    let twice = if is_once { &[][..] } else { &tiles };
    let by_columns = twice.iter().map(|tile| {
        let of = |&(row, column, value): &Entry<T>| (column, (row, value));
        sliced(tile, of, (width, count), stores_values)
    });
    let (by_rows, mut arrays): (Vec<_>, Vec<_>) = by_rows.unzip();
    let (by_columns, others): (Vec<_>, Vec<_>) = by_columns.unzip();
    arrays.extend(others);
    let block = Block {
        rows,
        by_rows,
        by_columns,
        work_before: 0,
    };
    (block, arrays)
}

/// Whether sums of the columns' entries can be in T. Such columns also are far enough apart in the order of the entries that
/// additions do not wait for each other.
fn has_short_columns<T>(tile: &[Entry<T>], width: usize) -> bool {
    let mut counts = vec![0_u32; width];
    for (_, column, _) in tile {
        counts[usize::from(*column)] += 1;
    }
    counts.iter().all(|count| *count <= PIECE as u32)
}

/// The entries of some rows, in their order, by tiles of columns.
fn entries<T: Scalar>(x: &Csr<'_, T>, rows: Range<usize>, width: usize) -> Vec<Vec<Entry<T>>> {
    let mut tiles = vec![Vec::new(); x.cols().div_ceil(width)];
    for row in rows.clone() {
        let own = x.offsets()[row] as usize..x.offsets()[row + 1] as usize;
        let own = x.indices()[own.clone()].iter().zip(&x.values()[own]);
        for (&column, &value) in own {
            let column = column as usize;
            let entry = ((row - rows.start) as u16, (column % width) as u16, value);
            tiles[column / width].push(entry);
        }
    }
    tiles
}

/// Some of the entries of an owner.
#[derive(Clone, Copy)]
struct Piece {
    owner: u16,
    start: usize,
    len: usize,
}

/// Entries in lists of their owners, side by side, the longest ones first. `of` gives the owner, and what the list has of an
/// entry; a list is padded with zeros, whose index is the number behind the last.
fn sliced<T: Scalar>(
    entries: &[Entry<T>],
    of: impl Fn(&Entry<T>) -> (u16, (u16, T)),
    (owners, padding): (usize, usize),
    stores_values: bool,
) -> (Part, Arrays<T>) {
    let (lists, starts) = lists(entries, of, owners);
    let mut pieces = Vec::new();
    for (owner, ends) in starts.windows(2).enumerate() {
        pieces.extend((ends[0]..ends[1]).step_by(PIECE).map(|start| Piece {
            owner: owner as u16,
            start,
            len: PIECE.min(ends[1] - start),
        }));
    }
    pieces.sort_by_key(|piece| Reverse(piece.len));
    let (mut part, mut arrays) = (Part::default(), Arrays::<T>::default());
    let padding = (padding as u16, T::default());
    for slice in pieces.chunks(LANES) {
        let len = slice[0].len;
        part.lens.push(len as u8);
        let lanes = (0..LANES).map(|lane| slice.get(lane));
        let owners = lanes
            .clone()
            .map(|piece| piece.map_or(NOBODY, |piece| piece.owner));
        part.owners.extend(owners);
        for step in 0..len {
            let at = |piece: Option<&Piece>| match piece {
                Some(piece) if step < piece.len => lists[piece.start + step],
                _ => padding,
            };
            for (index, value) in lanes.clone().map(at) {
                arrays.indices.push(index);
                if stores_values {
                    arrays.values.push(value);
                }
            }
        }
    }
    (part, arrays)
}

/// What lists have of their entries, sorted by their owners, and where each list starts, and the last one ends.
fn lists<T: Scalar>(
    entries: &[Entry<T>],
    of: impl Fn(&Entry<T>) -> (u16, (u16, T)),
    owners: usize,
) -> (Vec<(u16, T)>, Vec<usize>) {
    let mut starts = vec![0; owners + 1];
    for entry in entries {
        starts[usize::from(of(entry).0) + 1] += 1;
    }
    for owner in 0..owners {
        starts[owner + 1] += starts[owner];
    }
    let mut next = starts.clone();
    let mut lists = vec![(0, T::default()); entries.len()];
    for entry in entries {
        let (owner, own) = of(entry);
        let place = &mut next[usize::from(owner)];
        lists[*place] = own;
        *place += 1;
    }
    (lists, starts)
}
