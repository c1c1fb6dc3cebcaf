//! How work is cut into chunks: by the shape of the problem alone, so that neither the number of
//! threads nor their timing can change a result.

/// Chunks per pass at most: four for each of 16 cores, one for each of 64.
pub const MAX_CHUNKS: usize = 64;

/// Stored elements that make a chunk worth handing to another thread (some 10 µs of reading).
const MIN_WORK: usize = 64 * 1024;

/// Number of chunks for `work` stored elements: 1 means that the calling thread does it all.
pub fn count(work: usize) -> usize {
    (work / MIN_WORK).clamp(1, MAX_CHUNKS)
}

/// Sums for every column that are made side by side, one for each thread, even when they take as much memory as X.
const FEW_COPIES: usize = 8;

/// X is this many times as large as all such sums, where that leaves enough of them.
const COPIES_SHARE: usize = 32;

/// Sums in f64 for every one of `cols` columns that a pass over `work` stored elements makes side by side, in X of `bytes`
/// bytes: as many as take a small share of X's memory, as a power of two so that they go round; or up to [`FEW_COPIES`], and
/// all of X's memory, where that would leave cores idle.
pub fn copies(work: usize, bytes: usize, cols: usize) -> usize {
    let fitting = bytes / cols.max(1).saturating_mul(size_of::<f64>());
    let cheap = (fitting / COPIES_SHARE)
        .checked_ilog2()
        .map_or(1, |log| 1 << log);
    count(work).min(cheap.max(fitting.min(FEW_COPIES))).max(1)
}

/// The start of part `part` of `parts` nearly equal parts of `0..total`.
pub fn boundary(total: usize, part: usize, parts: usize) -> usize {
    // In u128, as total · part may exceed 64 bits.
    (total as u128 * part as u128 / parts as u128) as usize
}

/// Cuts `slice` at the ascending positions that `boundary` gives for `1..parts`.
pub fn split_mut<T>(
    mut slice: &mut [T],
    parts: usize,
    boundary: impl Fn(usize) -> usize,
) -> Vec<(usize, &mut [T])> {
    let mut pieces = Vec::with_capacity(parts);
    for part in 0..parts {
        let (start, end) = (boundary(part), boundary(part + 1));
        let (piece, rest) = std::mem::take(&mut slice).split_at_mut(end - start);
        pieces.push((start, piece));
        slice = rest;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once() {
        for (total, parts) in [(0, 1), (1, 3), (10, 3), (usize::MAX, 64)] {
            assert_eq!(boundary(total, 0, parts), 0);
            assert_eq!(boundary(total, parts, parts), total);
            assert!((0..parts).all(|p| boundary(total, p, parts) <= boundary(total, p + 1, parts)));
        }
        let mut values = [0, 1, 2, 3, 4];
        let pieces = split_mut(&mut values, 2, |part| boundary(5, part, 2));
        assert_eq!(pieces[0], (0, &mut [0, 1][..]));
        assert_eq!(pieces[1], (2, &mut [2, 3, 4][..]));
    }

    #[test]
    fn copies_take_a_small_share_of_x_or_are_few() {
        let bytes = 1 << 30;
        let of = |cols| copies(usize::MAX, bytes, cols);
        assert_eq!(of(0), MAX_CHUNKS);
        // 4 MiB each: 256 would fit, and a thirty-second of them are 8.
        assert_eq!(of(1 << 19), 8);
        // 64 MiB each: 16 would fit, and few are made.
        assert_eq!(of(1 << 23), FEW_COPIES);
        assert_eq!((of(1 << 26), of(usize::MAX >> 4)), (2, 1));
        assert_eq!(copies(0, bytes, 1), 1);
    }

    #[test]
    fn small_work_is_one_chunk() {
        assert_eq!(count(0), 1);
        assert_eq!(count(50_000), 1);
        assert_eq!(count(usize::MAX), MAX_CHUNKS);
    }
}
