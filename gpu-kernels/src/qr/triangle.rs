//! T of compact WY, a lane for each of its rows, from the products z.
//!
//! T(i, k) = Σ_{j<k} T(i, j) · z(k, j), z(k, j) = −τₖ·vⱼᵀvₖ, T(k, k) = τₖ. When column j of T is known, its products are
//! added to all later columns, whose sums move up by one register: the first of them is the next column. So each register
//! has a fixed number, and nothing is unrolled over columns.
//!
//! z(k, j) lies at `j · pitch + k − j − 1`: row j begins with what column j + 1 takes. Lanes that write z(k, ·) in one
//! instruction write to different banks.

use super::pieces::{four, read_chunk, write_piece};
use crate::cta::{Cta, Shared};
use crate::scalar::Real;

/// Columns that are skipped together when they are past the last.
const GROUP: usize = 4;

/// Sets the places of z to zero: `lanes` rows, a lane for each. A barrier of the warp must follow.
#[inline(always)]
#[track_caller]
pub fn clear<C: Cta, T: Real, const LANES: usize>(cta: &C, z: Shared<T>, lane: u32) {
    for i in 0..LANES as u32 {
        cta.shared_write(z, (lane * LANES as u32 + i) as usize, T::ZERO);
    }
}

/// Keeps z(k, lane); for lanes before k.
#[inline(always)]
#[track_caller]
pub fn keep<C: Cta, T: Real, const LANES: usize>(
    cta: &C,
    z: Shared<T>,
    (k, lane): (u32, u32),
    value: T,
) {
    if lane < k {
        let at = lane * LANES as u32 + k - lane - 1;
        cta.shared_write(z, at as usize, value);
    }
}

/// Places of z of `cols` columns, a multiple of four, where the row of each begins behind that of the one before: row j, of
/// `cols` − 1 − j places, ends with a whole pack.
pub const fn packed(cols: u32) -> u32 {
    row_packed(cols, cols)
}

/// Where row j of them begins. Four rows have `cols` − 4·⌊j / 4⌋ places each but for the last, which has four fewer.
#[inline(always)]
const fn row_packed(cols: u32, j: u32) -> u32 {
    let (fours, of_four) = (j / 4, j % 4);
    4 * fours * (cols + 1 - 2 * fours) + of_four * (cols - 4 * fours)
}

/// [`clear`] for [`packed`] places, by the `LANES` lanes of a matrix.
#[inline(always)]
#[track_caller]
pub fn clear_packed<C: Cta, T: Real, const LANES: usize, const COLS: usize>(
    cta: &C,
    z: Shared<T>,
    lane: u32,
) {
    let mut at = lane;
    while at < packed(COLS as u32) {
        cta.shared_write(z, at as usize, T::ZERO);
        at += LANES as u32;
    }
}

/// [`keep`] for a column that is known to be before k, in [`packed`] places.
#[inline(always)]
#[track_caller]
pub fn keep_packed<C: Cta, T: Real, const COLS: usize>(
    cta: &C,
    z: Shared<T>,
    (k, column): (u32, u32),
    value: T,
) {
    let at = row_packed(COLS as u32, column) + k - column - 1;
    cta.shared_write(z, at as usize, value);
}

/// Row `lane` of T, of which `tau` is the diagonal, to row `lane` of `to`, whose rows are `pitch` apart.
#[inline(always)]
#[track_caller]
pub fn rows<C: Cta, T: Real, const LANES: usize>(
    cta: &C,
    z: Shared<T>,
    (lane, columns): (u32, u32),
    tau: T,
    (to, pitch): (Shared<T>, u32),
) {
    let mut sums = [T::ZERO; LANES];
    for j in 0..columns {
        let value = if lane == j { tau } else { sums[0] };
        cta.shared_write(to, (lane * pitch + j) as usize, value);
        let left = columns - j;
        for c in 0..LANES / GROUP {
            if (c * GROUP) as u32 >= left {
                break;
            }
            let zs: [T; GROUP] = read_chunk(cta, z, j as usize * LANES + c * GROUP);
            for (r, z) in zs.iter().enumerate() {
                let at = c * GROUP + r;
                let later = if at + 1 < LANES {
                    sums[at + 1]
                } else {
                    T::ZERO
                };
                sums[at] = z.fma(value, later);
            }
        }
    }
}

/// Whether [`several_rows`] of this many columns are unrolled over these: loops take twice the instructions. Then no places
/// are read but those of products of columns.
pub const fn are_unrolled(cols: usize) -> bool {
    cols <= 4 * GROUP
}

/// Rows `numbers` of T, of which `taus` are the diagonal, to these rows of `to`, whose rows are `pitch` apart: whole packs.
/// Products have [`packed`] places. Without products of all columns the others are zeros.
#[inline(always)]
#[track_caller]
pub fn several_rows<C: Cta, T: Real, const EACH: usize, const COLS: usize>(
    cta: &C,
    z: Shared<T>,
    (numbers, columns): ([u32; EACH], u32),
    taus: [T; EACH],
    (to, pitch): (Shared<T>, u32),
) {
    let mut sums = [[T::ZERO; COLS]; EACH];
    if are_unrolled(COLS) {
        four(
            #[inline(always)]
            |g| {
                if g * GROUP < COLS {
                    four_columns(cta, z, g * GROUP, (&numbers, &taus), &mut sums, (to, pitch));
                }
            },
        );
        return;
    }
    let mut first = 0;
    while first < columns {
        let mut values = [[T::ZERO; GROUP]; EACH];
        four(
            #[inline(always)]
            |g| {
                let j = first + g as u32;
                for own in 0..EACH {
                    let is_diagonal = numbers[own] == j;
                    values[own][g] = if is_diagonal { taus[own] } else { sums[own][0] };
                }
                let now = core::array::from_fn(|own| values[own][g]);
                add_column(cta, z, (j, columns.saturating_sub(j)), &now, &mut sums);
            },
        );
        for own in 0..EACH {
            let at = numbers[own] * pitch + first;
            write_piece(cta, to, at as usize, &values[own]);
        }
        first += GROUP as u32;
    }
}

/// Adds the products of column `j` of T to the `left` columns behind it, which move up.
#[inline(always)]
#[track_caller]
fn add_column<C: Cta, T: Real, const EACH: usize, const COLS: usize>(
    cta: &C,
    z: Shared<T>,
    (j, left): (u32, u32),
    values: &[T; EACH],
    sums: &mut [[T; COLS]; EACH],
) {
    for c in 0..COLS / GROUP {
        // The column itself is one of the `left`.
        if (c * GROUP) as u32 + 1 >= left {
            break;
        }
        let row = row_packed(COLS as u32, j) as usize;
        let zs: [T; GROUP] = read_chunk(cta, z, row + c * GROUP);
        for (r, z) in zs.iter().enumerate() {
            let at = c * GROUP + r;
            for own in 0..EACH {
                let later = if at + 1 < COLS {
                    sums[own][at + 1]
                } else {
                    T::ZERO
                };
                sums[own][at] = z.fma(values[own], later);
            }
        }
    }
}

/// Columns `first` to `first` + 3 of T, a number that is known when this is compiled: sums stay where they are.
#[inline(always)]
#[track_caller]
#[expect(
    clippy::needless_range_loop,
    reason = "iterators over registers put them into local memory"
)]
fn four_columns<C: Cta, T: Real, const EACH: usize, const COLS: usize>(
    cta: &C,
    z: Shared<T>,
    first: usize,
    (numbers, taus): (&[u32; EACH], &[T; EACH]),
    sums: &mut [[T; COLS]; EACH],
    (to, pitch): (Shared<T>, u32),
) {
    let mut values = [[T::ZERO; GROUP]; EACH];
    four(
        #[inline(always)]
        |g| {
            let j = first + g;
            for own in 0..EACH {
                let is_diagonal = numbers[own] == j as u32;
                values[own][g] = if is_diagonal { taus[own] } else { sums[own][j] };
            }
            let row = row_packed(COLS as u32, j as u32) as usize;
            let later = COLS - 1 - j;
            let mut at = 0;
            while at < later {
                // Whole packs, then what is left: behind it nothing was written.
                let mut zs = [T::ZERO; GROUP];
                if at + GROUP <= later {
                    zs = read_chunk(cta, z, row + at);
                } else {
                    for i in 0..later - at {
                        zs[i] = cta.shared_read(z, row + at + i);
                    }
                }
                for i in 0..GROUP.min(later - at) {
                    for own in 0..EACH {
                        let sum = &mut sums[own][j + 1 + at + i];
                        *sum = zs[i].fma(values[own][g], *sum);
                    }
                }
                at += GROUP;
            }
        },
    );
    for own in 0..EACH {
        let at = numbers[own] * pitch + first as u32;
        write_piece(cta, to, at as usize, &values[own]);
    }
}
