//! Rows that are made on their way to a device, in blocks of some of them.

use std::ops::Range;

use gpu_kernels::In;

use super::{host, launch};
use crate::device::Buffer;
use crate::ops::Number;
use crate::ops::blocks::section;

/// Writes a range of an array's elements; called from several threads at once.
pub(crate) type Made<'a, T> = &'a (dyn Fn(Range<usize>, &mut [T]) + Sync);

/// X and what belongs to its rows, none of which lies in an array as a device wants it.
pub(crate) struct MadeRows<'a, T> {
    /// Rows of X.
    pub rows: usize,
    /// n.
    pub cols: usize,
    /// X, row by row, without gaps.
    pub x: Made<'a, T>,
    /// A target for each row.
    pub targets: Made<'a, T>,
    /// A weight for each row; absent: 1.
    pub weights: Option<Made<'a, T>>,
    /// An offset for each row; absent: 0.
    pub offset: Option<Made<'a, T>>,
}

impl<'a, T: Number> MadeRows<'a, T> {
    /// Each array, and how many elements a row has in it.
    fn arrays(&self) -> [Option<(Made<'a, T>, usize)>; 4] {
        let one = |made: Made<'a, T>| (made, 1);
        let others = [Some(self.targets), self.weights, self.offset];
        let [targets, weights, offset] = others.map(|made| made.map(one));
        [Some((self.x, self.cols)), targets, weights, offset]
    }

    /// Bytes of a row in all arrays.
    pub(super) fn row_bytes(&self) -> u64 {
        let arrays = self.arrays();
        let elements: usize = arrays.iter().flatten().map(|(_, each)| each).sum();
        elements as u64 * u64::from(T::SIZE)
    }
}

/// Elements at whose multiples arrays begin: 256 bytes or 512.
const ALIGNED: usize = 64;

/// A block of rows: its part of each array, one behind the other.
pub(super) struct Image<'a, 'm, T> {
    made: &'a MadeRows<'m, T>,
    rows: Range<usize>,
}

impl<'a, 'm, T: Number> Image<'a, 'm, T> {
    pub(super) fn new(made: &'a MadeRows<'m, T>, rows: Range<usize>) -> Self {
        Image { made, rows }
    }

    pub(super) fn first_row(&self) -> usize {
        self.rows.start
    }

    /// Where the arrays lie, in elements; of what is absent nowhere.
    fn sections(&self) -> [Range<usize>; 4] {
        let mut next = 0;
        self.made.arrays().map(|array| {
            let start = next;
            let end = start + array.map_or(0, |(_, each)| each * self.rows.len());
            next = end.next_multiple_of(ALIGNED);
            start..end
        })
    }

    /// Words of all of them.
    pub(super) fn words(&self) -> usize {
        let [.., last] = self.sections();
        last.end.next_multiple_of(ALIGNED) * size_of::<T>() / 4
    }

    /// Writes bytes of the block, whole elements.
    pub(super) fn fill(&self, bytes: Range<usize>, to: &mut [u8]) {
        let size = size_of::<T>();
        let all = bytes.start / size..bytes.end / size;
        let to: &mut [T] = bytemuck::cast_slice_mut(to);
        for (array, own) in self.made.arrays().into_iter().zip(self.sections()) {
            let gap = own.end..own.end.next_multiple_of(ALIGNED);
            part(to, (&all, &gap)).1.fill(T::default());
            let Some((make, each)) = array else { continue };
            let (first, to) = part(to, (&all, &own));
            if !to.is_empty() {
                let first = self.rows.start * each + first - own.start;
                make(first..first + to.len(), to);
            }
        }
    }

    /// The arrays of a block on a device.
    pub(super) fn inputs<'b>(&self, words: &'b Buffer<u32>) -> launch::Arrays<'b, T> {
        let each = size_of::<T>() / 4;
        let [x, targets, weights, offset] = self.sections();
        let of = |own: &Range<usize>| section::<T>(words, &(own.start * each..own.end * each));
        let optional = |made: Option<Made<'_, T>>, own| made.map_or(In::none(), |_| of(own));
        launch::Arrays {
            rows: self.rows.len(),
            x: of(&x),
            targets: of(&targets),
            weights: optional(self.made.weights, &weights),
            offset: optional(self.made.offset, &offset),
        }
    }

    /// Those of a block on the CPU.
    pub(super) fn slices<'b>(&self, words: &'b [u32]) -> host::Arrays<'b, T> {
        let all: &[T] = bytemuck::cast_slice(words);
        let [x, targets, weights, offset] = self.sections().map(|own| &all[own]);
        host::Arrays {
            cols: self.made.cols,
            pitch: self.made.cols,
            x,
            targets,
            weights: self.made.weights.map(|_| weights),
            offset: self.made.offset.map(|_| offset),
        }
    }
}

/// The part of `to`, elements `all`, in which `own` lies, and the first element of it.
fn part<'t, T>(
    to: &'t mut [T],
    (all, own): (&Range<usize>, &Range<usize>),
) -> (usize, &'t mut [T]) {
    let start = own.start.clamp(all.start, all.end);
    let end = own.end.clamp(start, all.end);
    (start, &mut to[start - all.start..end - all.start])
}
