//! A checksum against damage (not against malice), computed in parallel.

use std::ops::Range;

use bytemuck::Pod;

use crate::parallel;

/// Bytes that one task sums up; part of the file format.
const BLOCK: usize = 1 << 20;
/// 2⁶⁴ divided by the golden ratio, odd: every step of the sum is a bijection.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
/// Blocks that are summed up side by side: each step of a sum waits for the one before.
const LANES: usize = 4;

/// Of `bytes`: blocks are summed up on their own and the sums combined in order.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    checksum_and(bytes, |_| true).0
}

/// The checksum of numbers, and whether all of them are `sound`, which is asked of some at a time while they are in a cache.
pub(crate) fn checksum_and<V: Pod + Sync>(
    numbers: &[V],
    sound: impl Fn(&[V]) -> bool + Sync,
) -> (u64, bool) {
    let (sums, _, is_sound) = sums_of_part(numbers, (0, 1), sound);
    (of_blocks(size_of_val(numbers), sums), is_sound)
}

/// The sums of the blocks of part `number` of `of` of some numbers, for [`of_blocks`] of all parts; which numbers they are; and
/// whether all of these are `sound`.
pub(crate) fn sums_of_part<V: Pod + Sync>(
    numbers: &[V],
    (number, of): (usize, usize),
    sound: impl Fn(&[V]) -> bool + Sync,
) -> (Vec<u64>, Range<usize>, bool) {
    let length = LANES * BLOCK / size_of::<V>();
    let groups = numbers.len().div_ceil(length);
    let cut = |number: usize| (groups as u128 * number as u128 / of as u128) as usize;
    let (first, end) = (cut(number), cut(number + 1));
    let of_group = |group: &[V]| (group_sums(bytemuck::cast_slice(group)), sound(group));
    let of_group = |number| of_group(parallel::chunk(numbers, length, first + number));
    let groups = parallel::map(end - first, of_group);
    let is_sound = groups.iter().all(|(_, is_sound)| *is_sound);
    let sums = groups.into_iter().flat_map(|(sums, _)| sums).collect();
    (
        sums,
        first * length..numbers.len().min(end * length),
        is_sound,
    )
}

/// The checksum of a section of this many bytes, of the sums of its blocks in order.
pub(crate) fn of_blocks(bytes: usize, sums: impl IntoIterator<Item = u64>) -> u64 {
    sums.into_iter().fold(bytes as u64, combine)
}

/// The checksum of a file, of those of its sections in order.
pub(crate) fn of_sections(sums: [u64; 4]) -> u64 {
    sums.into_iter().fold(0, combine)
}

/// Adds `word` to a running sum; for a given sum no two words give the same result.
pub(crate) fn combine(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(MULTIPLIER).rotate_left(29)
}

/// The sums of the blocks of a group.
fn group_sums(bytes: &[u8]) -> Vec<u64> {
    if bytes.len() == LANES * BLOCK {
        return side_by_side(bytes).to_vec();
    }
    bytes.chunks(BLOCK).map(block).collect()
}

/// The sums of [`LANES`] whole blocks.
fn side_by_side(bytes: &[u8]) -> [u64; LANES] {
    let (words, _) = bytes.as_chunks::<8>();
    let (blocks, _) = words.as_chunks::<{ BLOCK / 8 }>();
    let mut sums = [0; LANES];
    for at in 0..BLOCK / 8 {
        for (sum, block) in sums.iter_mut().zip(blocks) {
            *sum = combine(*sum, u64::from_le_bytes(block[at]));
        }
    }
    // As for every block, what is left after the last whole word: nothing.
    sums.map(|sum| combine(sum, 0))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_side_by_side_have_the_sums_of_blocks_one_by_one() {
        let bytes: Vec<u8> = (0..2 * LANES * BLOCK + 1_003)
            .map(|i| ((i * i) >> 7) as u8)
            .collect();
        for len in [0, 5, BLOCK, LANES * BLOCK - 1, LANES * BLOCK, bytes.len()] {
            let blocks = bytes[..len].chunks(BLOCK).map(block);
            let expected = blocks.fold(len as u64, combine);
            assert_eq!(checksum(&bytes[..len]), expected, "{len} bytes");
        }
    }

    #[test]
    fn parts_together_have_the_sum_of_the_whole() {
        let count = (3 * LANES * BLOCK / 4 + 1_003) as u32;
        let numbers: Vec<u32> = (0..count).map(|i| i.wrapping_mul(i) >> 5).collect();
        let expected = checksum(bytemuck::cast_slice(&numbers));
        for of in [1, 2, 3, 5] {
            let parts = (0..of).map(|number| sums_of_part(&numbers, (number, of), |_| true));
            let (mut sums, mut next) = (Vec::new(), 0);
            for (own, range, _) in parts {
                assert_eq!(range.start.min(numbers.len()), next);
                next = range.end;
                sums.extend(own);
            }
            assert_eq!(
                (of_blocks(4 * numbers.len(), sums), next),
                (expected, numbers.len())
            );
        }
    }

    #[test]
    fn one_unsound_number_is_found_wherever_it_is() {
        let mut numbers = vec![0_u32; 3 * LANES * BLOCK / 4 + 5];
        let sound = |numbers: &[u32]| numbers.iter().all(|number| *number == 0);
        assert!(checksum_and(&numbers, sound).1);
        for at in [0, LANES * BLOCK / 4, numbers.len() - 1] {
            numbers[at] = 1;
            assert!(!checksum_and(&numbers, sound).1, "at {at}");
            numbers[at] = 0;
        }
    }
}
