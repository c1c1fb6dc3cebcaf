//! Packs an operand of [`halves`](super::halves), in two launches: [`largest`] finds the largest magnitude of each row in each
//! part of k, [`pack`] makes scales of them, and splits and writes the elements. The form is that of
//! [`packed`](super::packed); a row of op(A) or a column of op(B) is a row here, and `m` counts them.
//!
//! Mapping: a block takes 32 rows and a part of k, 32 steps at a time. Warp w reads four stored rows of such a
//! square, whether these lie across or along k, each 128 bytes. Shared memory turns the square, so that a lane gets four
//! steps of two rows, and a warp writes 512 bytes of a panel: high halves or low ones.
//!
//! Shared elements: [`SHARED_ELEMENTS`]. Determinism: the same bits for every grid; a magnitude is compared by its bits, of
//! which those of NaN are the largest.

use super::MatmulArgs;
use super::packed::{Places, QUARTER, ROW, ROWS, TILE};
use super::panel::{DEPTH, part_length};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::memory::In;
use crate::scalar::half_to_f32;

/// Threads of a block.
pub const THREADS: u32 = 256;
/// Rows, and steps of k, of a square.
const SIDE: u32 = ROWS;
/// Elements of a square that a thread reads.
const EACH: usize = (SIDE * SIDE / THREADS) as usize;
/// Elements between the rows of a square in shared memory: packs of eight lanes fill all banks.
const PITCH: u32 = SIDE + 4;
/// Elements of shared memory of a block: one square is read while the next one is written.
pub const SHARED_ELEMENTS: u32 = 2 * SIDE * PITCH;

/// All bits of an f32 but its sign.
const MAGNITUDE: u32 = 0x7fff_ffff;
/// The exponent of scaled rows' largest magnitudes.
const TOP: i32 = 14;
/// The largest exponent of a scale, whose reciprocal is a normal number.
const MAX_SCALE: i32 = 126;
/// What is added to an exponent of f32.
const BIAS: i32 = 127;

/// What a block packs.
struct Strip<'a> {
    /// From the thread's first element of the next square on.
    from: In<'a, f32>,
    /// Elements between stored rows.
    ld: u64,
    /// Elements from the start of a square to that of the next one.
    advance: u64,
    is_along: bool,
    /// Rows from the strip's first to the end.
    rows: u32,
    /// Steps of k from the next square's first to the end.
    left: u32,
    /// The strip's first row.
    first: u32,
    part: u32,
    /// The first step of the part.
    begin: u32,
    /// Squares.
    squares: u32,
}

impl<'a> Strip<'a> {
    #[inline(always)]
    fn of<C: Cta>(cta: &C, args: &MatmulArgs<'a, f32>) -> Strip<'a> {
        let strips = Places::of(args.m).padded() / SIDE;
        let (part, first) = (cta.block() / strips, cta.block() % strips * SIDE);
        let length = part_length(args.k, args.parts);
        let begin = (part * length).min(args.k);
        let end = (part * length).saturating_add(length).min(args.k);
        let is_along = args.a_transposed == 0;
        let (row, column) = if is_along {
            (first, begin)
        } else {
            (begin, first)
        };
        let (outer, inner) = own(cta);
        let from = (row + outer) as u64 * args.lda + (column + inner) as u64;
        Strip {
            from: args.a.after(from),
            ld: args.lda,
            advance: SIDE as u64 * if is_along { 1 } else { args.lda },
            is_along,
            rows: args.m.saturating_sub(first),
            left: end - begin,
            first,
            part,
            begin,
            squares: (end - begin).div_ceil(SIDE),
        }
    }

    /// Row and step in a square of the thread's element in the `i`-th of its stored rows.
    #[inline(always)]
    fn place<C: Cta>(&self, cta: &C, i: usize) -> (u32, u32) {
        let (outer, inner) = own(cta);
        let outer = outer + i as u32;
        if self.is_along {
            (outer, inner)
        } else {
            (inner, outer)
        }
    }

    /// The thread's elements of the next square, zero outside of the matrix.
    #[inline(always)]
    fn next<C: Cta>(&mut self, cta: &C) -> [f32; EACH] {
        let values = core::array::from_fn(|i| {
            let (row, step) = self.place(cta, i);
            if row < self.rows && step < self.left {
                cta.load(self.from, (i as u64 * self.ld) as usize, Cache::Once)
            } else {
                0.0
            }
        });
        self.left = self.left.saturating_sub(SIDE);
        self.from = self.from.after(self.advance);
        values
    }

    /// Writes the thread's elements of a square to shared memory.
    #[inline(always)]
    fn put<C: Cta>(&self, cta: &C, square: Shared<f32>, values: [f32; EACH]) {
        for i in 0..EACH {
            let (row, step) = self.place(cta, i);
            cta.shared_write(square, (row * PITCH + step) as usize, values[i]);
        }
    }
}

/// The first stored row of a square of which a thread reads an element, and where in it.
#[inline(always)]
fn own<C: Cta>(cta: &C) -> (u32, u32) {
    let (warp, lane) = (cta.thread() / WARP, cta.thread() % WARP);
    (warp * EACH as u32, lane)
}

#[inline(always)]
fn square(turn: u32) -> Shared<f32> {
    Shared::at(turn * SIDE * PITCH * 4, SIDE * PITCH)
}

/// The largest magnitudes of a part of k.
#[inline(always)]
pub fn largest<C: Cta>(cta: &C, args: &MatmulArgs<'_, f32>) {
    let mut strip = Strip::of(cta, args);
    let mut largest = [0; EACH];
    for _ in 0..strip.squares {
        let values = strip.next(cta);
        for i in 0..EACH {
            largest[i] = (values[i].to_bits() & MAGNITUDE).max(largest[i]);
        }
    }
    strip.put(cta, square(0), largest.map(f32::from_bits));
    cta.sync();
    let row = cta.thread();
    if row < SIDE {
        let mut all = 0;
        for pack in 0..SIDE / 4 {
            let at = row * PITCH + pack * 4;
            let four = cta.shared_read_pack(square(0), at as usize);
            for i in 0..4 {
                all = four[i].to_bits().max(all);
            }
        }
        let at = Places::of(args.m).largest(strip.part, strip.first + row);
        cta.write(args.c, at as usize, f32::from_bits(all));
    }
}

/// The scale of a row.
#[inline(always)]
fn scale<C: Cta>(cta: &C, args: &MatmulArgs<'_, f32>, row: u32) -> f32 {
    let places = Places::of(args.m);
    let mut largest = 0;
    for part in 0..args.parts {
        let of_part = cta.read(args.c, places.largest(part, row) as usize);
        largest = of_part.to_bits().max(largest);
    }
    let exponent = (largest >> 23) as i32 - BIAS;
    let of_scale = (TOP - exponent).min(MAX_SCALE);
    f32::from_bits(((of_scale + BIAS) as u32) << 23)
}

/// What a thread writes of each square.
struct Own {
    /// The first of its two rows, in the strip.
    row: u32,
    /// Its panel of two, and its steps in it.
    step: u32,
    is_low: bool,
    /// Words from the start of the tile's group.
    to: u32,
}

impl Own {
    #[inline(always)]
    fn of<C: Cta>(cta: &C, first: u32) -> Own {
        let (warp, lane) = (cta.thread() / WARP, cta.thread() % WARP);
        let (quarter, panel) = (warp % 4, warp / 4);
        Own {
            row: lane / 4 * 4 + quarter / 2 * 2,
            step: panel * DEPTH + lane % 4 * 4,
            is_low: quarter % 2 == 1,
            to: (panel * TILE + first % TILE) * ROW + quarter * QUARTER + 4 * lane,
        }
    }
}

/// Splits and writes a part of k of op(A), or else of op(B).
#[inline(always)]
pub fn pack<C: Cta, const LEFT: bool>(cta: &C, args: &MatmulArgs<'_, f32>) {
    let mut strip = Strip::of(cta, args);
    let places = Places::of(args.m);
    let own = Own::of(cta, strip.first);
    let first = strip.first + own.row;
    let scales = [first, first + 1].map(|row| scale(cta, args, row));
    if strip.part == 0 && own.step == 0 && !own.is_low {
        for i in 0..2 {
            cta.write(args.c, first as usize + i, scales[i]);
        }
    }
    let mut to = places.group(strip.begin, strip.first) + own.to as u64;
    for turn in 0..strip.squares {
        let values = strip.next(cta);
        let square = square(turn % 2);
        strip.put(cta, square, values);
        cta.sync();
        let at = (own.row * PITCH + own.step) as usize;
        let rows = [0, 1].map(|i| {
            let four = cta.shared_read_pack(square, at + i * PITCH as usize);
            halves(cta, four.map(|x| x * scales[i]), own.is_low)
        });
        let [[p, q], [of_p, of_q]] = rows;
        let words = if LEFT {
            [p, of_p, q, of_q]
        } else {
            [p, q, of_p, of_q]
        };
        cta.write_pack(args.c, to as usize, words.map(f32::from_bits));
        to += places.pitch();
    }
}

/// The nearest halves of two pairs, or those of what is left.
#[inline(always)]
fn halves<C: Cta>(cta: &C, [a, b, c, d]: [f32; 4], is_low: bool) -> [u32; 2] {
    let high = [cta.halves([a, b]), cta.halves([c, d])];
    if !is_low {
        return high;
    }
    let left = |[x, y]: [f32; 2], high: u32| {
        let of = [half_to_f32(high & 0xffff), half_to_f32(high >> 16)];
        cta.halves([x - of[0], y - of[1]])
    };
    [left([a, b], high[0]), left([c, d], high[1])]
}
