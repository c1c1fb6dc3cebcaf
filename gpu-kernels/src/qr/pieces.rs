//! Pieces of columns in registers, and rows that leave them.
//!
//! A lane has consecutive elements of one column, cut into chunks of [`CHUNK`]. Chunks that are known to be zero are not
//! computed with; the branch is the same for all lanes that have the same rows.

use crate::cta::{Cta, Shared};
use crate::scalar::{Real, Words};

/// Elements of a chunk.
pub const CHUNK: usize = 8;

/// `N` elements of a shared array, whole packs; `at` is a multiple of a pack.
#[inline(always)]
#[track_caller]
pub fn read_chunk<C: Cta, T: Real, const N: usize>(cta: &C, from: Shared<T>, at: usize) -> [T; N] {
    let lanes = <T::Pack as Words<T>>::LANES;
    let mut chunk = [T::ZERO; N];
    let mut i = 0;
    while i < N {
        let pack = cta.shared_read_pack(from, at + i);
        for (lane, value) in pack.as_ref().iter().enumerate() {
            chunk[i + lane] = *value;
        }
        i += lanes;
    }
    chunk
}

/// Writes a piece to a shared array; `at` is a multiple of a pack.
#[inline(always)]
#[track_caller]
pub fn write_piece<C: Cta, T: Real, const N: usize>(
    cta: &C,
    to: Shared<T>,
    at: usize,
    piece: &[T; N],
) {
    let lanes = <T::Pack as Words<T>>::LANES;
    let mut i = 0;
    while i < N {
        let words = core::array::from_fn(|j| if j < lanes { piece[i + j].to_bits() } else { 0 });
        cta.shared_write_pack(to, at + i, T::Pack::from_words(words));
        i += lanes;
    }
}

/// Σ x[r] · piece[r] over the first `live` elements and no more than their chunks, in four sums. The first element counts
/// unless `skip_first`.
#[inline(always)]
#[track_caller]
pub fn dot<C: Cta, T: Real, const N: usize>(
    cta: &C,
    x: (Shared<T>, usize),
    piece: &[T; N],
    live: u32,
    skip_first: bool,
) -> T {
    let mut sums = [T::ZERO; 4];
    for c in 0..N / CHUNK {
        if (c * CHUNK) as u32 >= live {
            break;
        }
        let mut xs: [T; CHUNK] = read_chunk(cta, x.0, x.1 + c * CHUNK);
        if c == 0 && skip_first {
            xs[0] = T::ZERO;
        }
        for r in 0..CHUNK {
            sums[r % 4] = xs[r].fma(piece[c * CHUNK + r], sums[r % 4]);
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// piece += z · x, where they are.
#[inline(always)]
#[track_caller]
pub fn add_scaled<C: Cta, T: Real, const N: usize>(
    cta: &C,
    x: (Shared<T>, usize),
    piece: &mut [T; N],
    live: u32,
    z: T,
) {
    for c in 0..N / CHUNK {
        if (c * CHUNK) as u32 >= live {
            break;
        }
        let xs: [T; CHUNK] = read_chunk(cta, x.0, x.1 + c * CHUNK);
        for (r, x) in xs.iter().enumerate() {
            let at = c * CHUNK + r;
            piece[at] = x.fma(z, piece[at]);
        }
    }
}

/// piece[r] = piece[r + 1] + z · x[r + 1]: the first row leaves, a zero comes in.
#[inline(always)]
#[track_caller]
pub fn add_and_shift<C: Cta, T: Real, const N: usize>(
    cta: &C,
    x: (Shared<T>, usize),
    piece: &mut [T; N],
    live: u32,
    z: T,
) {
    let mut xs: [T; CHUNK] = read_chunk(cta, x.0, x.1);
    for c in 0..N / CHUNK {
        let next = (c + 1) * CHUNK;
        if (c * CHUNK) as u32 >= live {
            break;
        }
        let is_last = next >= N || next as u32 >= live;
        let following = if is_last {
            [T::ZERO; CHUNK]
        } else {
            read_chunk(cta, x.0, x.1 + next)
        };
        for r in 0..CHUNK - 1 {
            let at = c * CHUNK + r;
            piece[at] = xs[r + 1].fma(z, piece[at + 1]);
        }
        let entering = if next < N { piece[next] } else { T::ZERO };
        piece[next - 1] = following[0].fma(z, entering);
        xs = following;
    }
}

/// The first `live` elements of a shown column and no more than their chunks; the others are zero.
#[inline(always)]
#[track_caller]
pub fn read_live<C: Cta, T: Real, const N: usize>(
    cta: &C,
    x: (Shared<T>, usize),
    live: u32,
) -> [T; N] {
    let mut all = [T::ZERO; N];
    for c in 0..N / CHUNK {
        if (c * CHUNK) as u32 >= live {
            break;
        }
        let chunk: [T; CHUNK] = read_chunk(cta, x.0, x.1 + c * CHUNK);
        for r in 0..CHUNK {
            all[c * CHUNK + r] = chunk[r];
        }
    }
    all
}

/// Σ x[r] · piece[r] over all but the first of the first `live` elements and no more than their chunks, in four sums.
#[inline(always)]
pub fn dot_tail<T: Real, const N: usize>(x: &[T; N], piece: &[T; N], live: u32) -> T {
    let mut sums = [T::ZERO; 4];
    for c in 0..N / CHUNK {
        if (c * CHUNK) as u32 >= live {
            break;
        }
        for r in 0..CHUNK {
            let at = c * CHUNK + r;
            if at > 0 {
                sums[r % 4] = x[at].fma(piece[at], sums[r % 4]);
            }
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// [`add_and_shift`] of a column in registers.
#[inline(always)]
pub fn shift_and_add<T: Real, const N: usize>(x: &[T; N], piece: &mut [T; N], live: u32, z: T) {
    for c in 0..N / CHUNK {
        if (c * CHUNK) as u32 >= live {
            break;
        }
        for r in 0..CHUNK {
            let at = c * CHUNK + r;
            piece[at] = if at + 1 < N {
                x[at + 1].fma(z, piece[at + 1])
            } else {
                T::ZERO
            };
        }
    }
}

/// f(0) to f(3): a loop that is unrolled for certain, so that arrays stay in registers.
#[inline(always)]
#[track_caller]
pub fn four<R>(mut f: impl FnMut(usize) -> R) -> [R; 4] {
    [f(0), f(1), f(2), f(3)]
}
