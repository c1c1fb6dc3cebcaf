//! Joining blocks of rows that were made in parallel.

use rayon::prelude::*;

use super::{CsrError, CsrMatrix, Element, csr_from_parts};

/// Some consecutive rows in CSR form.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RowBlock<T> {
    /// For each row, where its entries end in the block.
    pub row_ends: Vec<u64>,
    /// Column indices, strictly ascending within a row.
    pub indices: Vec<u32>,
    /// One value per index.
    pub values: Vec<T>,
}

/// The places of one block in the joined arrays.
struct Slot<'a, T> {
    entries_before: u64,
    offsets: &'a mut [u64],
    indices: &'a mut [u32],
    values: &'a mut [T],
}

/// Joins blocks of rows, in order, into one matrix with `cols` columns.
///
/// Blocks are copied in parallel and freed one by one, so that the peak of memory stays below
/// twice the size of the result.
///
/// # Errors
///
/// [`CsrError`] as from [`csr_from_parts`], and [`CsrError::Ends`] for a block whose last row does
/// not end at its number of indices and values.
///
/// ```
/// use warpfuse::matrix::{csr_from_blocks, RowBlock};
/// let a = RowBlock { row_ends: vec![1, 1], indices: vec![4], values: vec![1.0] };
/// let b = RowBlock { row_ends: vec![2], indices: vec![0, 1], values: vec![2.0, 3.0] };
/// let x = csr_from_blocks(5, vec![a, b])?;
/// assert_eq!(x.indptr().raw_storage(), [0, 1, 1, 3]);
/// # Ok::<(), warpfuse::matrix::CsrError>(())
/// ```
pub fn csr_from_blocks<T: Element>(
    cols: usize,
    blocks: Vec<RowBlock<T>>,
) -> Result<CsrMatrix<T>, CsrError> {
    blocks.iter().try_for_each(check_block)?;
    let rows: usize = blocks.iter().map(|b| b.row_ends.len()).sum();
    let nnz: usize = blocks.iter().map(|b| b.indices.len()).sum();
    let mut offsets = vec![0; rows + 1];
    let (mut indices, mut values) = (vec![0; nnz], vec![T::default(); nnz]);
    slots(&blocks, &mut offsets[1..], &mut indices, &mut values)
        .into_par_iter()
        .zip(blocks)
        .for_each(|(slot, block)| slot.fill(&block));
    csr_from_parts((rows, cols), offsets, indices, values)
}

fn check_block<T>(block: &RowBlock<T>) -> Result<(), CsrError> {
    let (indices, values) = (block.indices.len(), block.values.len());
    let last = block.row_ends.last().copied().unwrap_or(0);
    if last == indices as u64 && indices == values {
        return Ok(());
    }
    let first = 0;
    Err(CsrError::Ends {
        first,
        last,
        indices,
        values,
    })
}

fn slots<'a, T>(
    blocks: &[RowBlock<T>],
    mut offsets: &'a mut [u64],
    mut indices: &'a mut [u32],
    mut values: &'a mut [T],
) -> Vec<Slot<'a, T>> {
    let why = "the arrays are as long as all blocks together";
    let mut entries_before = 0;
    let slot = |block: &RowBlock<T>| {
        let (rows, entries) = (block.row_ends.len(), block.indices.len());
        let slot = Slot {
            entries_before,
            offsets: offsets.split_off_mut(..rows).expect(why),
            indices: indices.split_off_mut(..entries).expect(why),
            values: values.split_off_mut(..entries).expect(why),
        };
        entries_before += entries as u64;
        slot
    };
    blocks.iter().map(slot).collect()
}

impl<T: Copy> Slot<'_, T> {
    fn fill(self, block: &RowBlock<T>) {
        for (offset, end) in self.offsets.iter_mut().zip(&block.row_ends) {
            *offset = self.entries_before.saturating_add(*end);
        }
        self.indices.copy_from_slice(&block.indices);
        self.values.copy_from_slice(&block.values);
    }
}
