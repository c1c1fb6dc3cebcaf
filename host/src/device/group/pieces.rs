//! What members have, one piece after the other.

use std::time::Instant;

use bytemuck::Pod;

use super::communicator::Communicator;
use super::error::GroupError;
use super::number::GroupNumber;

/// The values of all members; `lengths` of each.
pub(super) fn gathered<T: Pod>(
    engine: &dyn Communicator,
    (own, lengths): (&[T], &[usize]),
    until: Instant,
) -> Result<Vec<T>, GroupError> {
    let mut all = vec![T::zeroed(); lengths.iter().sum()];
    let bytes: Vec<usize> = lengths.iter().map(|len| len * size_of::<T>()).collect();
    let to = bytemuck::cast_slice_mut(&mut all);
    engine.all_gather(bytemuck::cast_slice(own), &bytes, to, until)?;
    Ok(all)
}

/// Rows of `parts`, each as long as `into`, one after the other.
pub(super) fn combined<T: GroupNumber>(parts: &[T], into: &mut [T], combine: fn(T, T) -> T) {
    let mut rows = parts.chunks_exact(into.len().max(1));
    if let Some(first) = rows.next() {
        into.copy_from_slice(first);
    }
    for row in rows {
        let pairs = into.iter_mut().zip(row);
        pairs.for_each(|(sum, value)| *sum = combine(*sum, *value));
    }
}

/// Pieces of these lengths.
pub(super) fn slices_of<'a, T>(mut all: &'a mut [T], lengths: &[usize]) -> Vec<&'a mut [T]> {
    let mut pieces = Vec::with_capacity(lengths.len());
    for len in lengths {
        let (piece, rest) = all.split_at_mut(*len);
        pieces.push(piece);
        all = rest;
    }
    pieces
}
