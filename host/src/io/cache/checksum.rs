//! A checksum against damage (not against malice), computed in parallel.

use rayon::prelude::*;

/// Bytes that one task sums up; part of the file format.
const BLOCK: usize = 1 << 20;
/// 2⁶⁴ divided by the golden ratio, odd: every step of the sum is a bijection.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Of `bytes`: blocks are summed up on their own and the sums combined in order.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    let blocks: Vec<u64> = bytes.par_chunks(BLOCK).map(block).collect();
    blocks.into_iter().fold(bytes.len() as u64, combine)
}

/// Adds `word` to a running sum; for a given sum no two words give the same result.
pub(super) fn combine(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(MULTIPLIER).rotate_left(29)
}

fn block(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words
        .iter()
        .fold(0, |sum, word| combine(sum, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    combine(sum, u64::from_le_bytes(last))
}
