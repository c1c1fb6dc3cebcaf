//! Arrays cut for tasks that write them side by side.

use rayon::prelude::*;

/// Elements of a running sum that one task takes.
const BLOCK: usize = 1 << 16;

/// Pieces of an array, one after the other, of these lengths; what is behind them is left out.
pub(super) fn cut<T>(array: &mut [T], lengths: impl IntoIterator<Item = usize>) -> Vec<&mut [T]> {
    let mut rest = array;
    let piece = |length| {
        let (piece, behind) = std::mem::take(&mut rest).split_at_mut(length);
        rest = behind;
        piece
    };
    lengths.into_iter().map(piece).collect()
}

/// Replaces each number by the sum of all up to it.
pub(crate) fn sum_up(numbers: &mut [u64]) {
    let sums: Vec<u64> = numbers
        .par_chunks_mut(BLOCK)
        .map(|block| {
            let mut sum = 0_u64;
            for number in block.iter_mut() {
                sum = sum.wrapping_add(*number);
                *number = sum;
            }
            sum
        })
        .collect();
    let before: Vec<u64> = sums
        .iter()
        .scan(0_u64, |sum, block| {
            Some(std::mem::replace(sum, sum.wrapping_add(*block)))
        })
        .collect();
    let blocks = numbers.par_chunks_mut(BLOCK).zip(before);
    blocks.for_each(|(block, before)| {
        for number in block {
            *number = number.wrapping_add(before);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_one_another() {
        let mut array = [1, 2, 3, 4, 5];
        let pieces = cut(&mut array, [2, 0, 1]);
        assert_eq!(pieces, [&mut [1, 2][..], &mut [], &mut [3]]);
    }

    #[test]
    fn sums_go_over_the_ends_of_blocks() {
        let mut numbers: Vec<u64> = (0..3 * BLOCK as u64 + 7).collect();
        sum_up(&mut numbers);
        let expected = |i: u64| i * (i + 1) / 2;
        assert!((0..).zip(&numbers).all(|(i, sum)| *sum == expected(i)));
        sum_up(&mut []);
    }
}
