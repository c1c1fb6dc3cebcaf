//! The columns of T above those of a panel: −T′ · S, T′ the T of all reflectors before, S from
//! [`update`](super::update).
//!
//! A block has 64 rows of one matrix: four by four elements of a thread, factors in chunks of 32 in shared memory. T′ is a
//! triangle: row i begins with column i.

use super::args::{QrArgs, Site};
use super::pieces::{four, read_chunk};
use super::reflector::Ranged;
use super::update::WORK_WIDTH;
use crate::cta::{Cta, Shared};

/// Threads of a block.
pub const MERGE_BLOCK: u32 = 128;
/// Rows of a block.
pub const MERGE_ROWS: u32 = 64;
/// Columns of T′ of a chunk.
const CHUNK: u32 = 32;
/// Elements from a staged row of T′ to the next.
const PITCH: u32 = CHUNK + 4;

/// Shared memory of a block.
pub const fn merge_shared_bytes(bytes: u32) -> u32 {
    (MERGE_ROWS * PITCH + CHUNK * WORK_WIDTH) * bytes
}

/// See the head of the file.
#[inline(always)]
pub fn merge<C: Cta, T: Ranged>(cta: &C, args: &QrArgs<'_, T>) {
    let tiles = args.start.div_ceil(MERGE_ROWS);
    let (matrix, first) = (cta.block() / tiles, cta.block() % tiles * MERGE_ROWS);
    let site = Site::of(cta, args, matrix);
    if args.start >= site.least() {
        return;
    }
    let columns = (site.least() - args.start).min(args.width);
    let triangle = Shared::at(0, MERGE_ROWS * PITCH);
    let right = Shared::at(triangle.end(), CHUNK * WORK_WIDTH);
    let (quad, group) = (cta.thread() % 8, cta.thread() / 8);
    let mut sums = [[T::ZERO; 4]; 4];
    let mut base = first;
    while base < args.start {
        stage(cta, args, &site, (matrix, first, base), (triangle, right));
        cta.sync();
        let (mut j, last) = (0, cta.fresh(CHUNK));
        while j < last {
            let left: [[T; 4]; 4] =
                four(|i| read_chunk(cta, triangle, ((group * 4 + i as u32) * PITCH + j) as usize));
            four(|r| {
                let at = (j + r as u32) * WORK_WIDTH + quad * 4;
                let s: [T; 4] = read_chunk(cta, right, at as usize);
                four(|i| four(|c| sums[i][c] = left[i][r].fma(s[c], sums[i][c])));
            });
            j += 4;
        }
        cta.sync();
        base += CHUNK;
    }
    four(|i| {
        four(|c| {
            let (row, col) = (first + group * 4 + i as u32, quad * 4 + c as u32);
            if row < args.start && col < columns {
                cta.write(args.t, site.in_t(row, args.start + col), -sums[i][c]);
            }
        })
    });
}

/// Columns `base` to + 31 of T′, and the same rows of S.
#[inline(always)]
#[track_caller]
fn stage<C: Cta, T: Ranged>(
    cta: &C,
    args: &QrArgs<'_, T>,
    site: &Site,
    (matrix, first, base): (u32, u32, u32),
    (triangle, right): (Shared<T>, Shared<T>),
) {
    let (of_chunk, line) = (cta.thread() % CHUNK, cta.thread() / CHUNK);
    for i in 0..MERGE_ROWS / 4 {
        let (row, col) = (line + 4 * i, base + of_chunk);
        let is_there = first + row < args.start && col < args.start && col >= first + row;
        let value = match is_there {
            true => cta.read(args.t, site.in_t(first + row, col)),
            false => T::ZERO,
        };
        cta.shared_write(triangle, (row * PITCH + of_chunk) as usize, value);
    }
    let all = args.rows.min(args.cols) as usize;
    for i in 0..CHUNK / 4 {
        let (j, p) = (line + 4 * i, of_chunk);
        let is_there = base + j < args.start && p < (site.least() - args.start).min(args.width);
        let at = (matrix as usize * all + (base + j) as usize) * WORK_WIDTH as usize + p as usize;
        let value = if is_there {
            cta.read(args.work, at)
        } else {
            T::ZERO
        };
        cta.shared_write(right, (j * WORK_WIDTH + p) as usize, value);
    }
}
