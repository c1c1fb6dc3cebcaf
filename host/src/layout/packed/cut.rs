//! Where X is cut into blocks of rows.

/// Blocks begin at multiples of this many rows, so that parts of vectors are aligned to 16 bytes.
const GROUP: usize = 32;

/// Rows at which to cut `rows` of them, so that what `size` says of each block is at most `limit` where a group of 32 rows
/// allows it; the first is 0, the last m. `size` grows with its second argument.
///
/// ```
/// use warpfuse::layout::packed::cut_rows;
/// let four_bytes_each = |from: usize, to: usize| 4 * (to - from) as u64;
/// assert_eq!(cut_rows(100, 256, four_bytes_each), [0, 64, 100]);
/// assert_eq!(cut_rows(0, 256, four_bytes_each), [0, 0]);
/// ```
pub fn cut_rows(rows: usize, limit: u64, size: impl Fn(usize, usize) -> u64) -> Vec<usize> {
    let mut cuts = vec![0];
    let mut start = 0;
    while start < rows {
        let groups = (rows - start).div_ceil(GROUP);
        // The most groups that fit, at least one.
        let (mut least, mut most) = (1, groups);
        while least < most {
            let middle = least + (most - least).div_ceil(2);
            let end = rows.min(start + middle * GROUP);
            match size(start, end) <= limit {
                true => least = middle,
                false => most = middle - 1,
            }
        }
        start = rows.min(start + least * GROUP);
        cuts.push(start);
    }
    if rows == 0 {
        cuts.push(0);
    }
    cuts
}
