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
    fn small_work_is_one_chunk() {
        assert_eq!(count(0), 1);
        assert_eq!(count(50_000), 1);
        assert_eq!(count(usize::MAX), MAX_CHUNKS);
    }
}
