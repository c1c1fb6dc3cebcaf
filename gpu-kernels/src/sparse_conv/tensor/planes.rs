//! Inputs as planes of pieces.

use super::super::args::{Geometry, SparseConvArgs};
use super::super::element::Element;
use crate::cta::{Cache, Cta};
use crate::verbs::each_of_grid;

/// Planes of the inputs, bytes or halves: piece × image × group × row × column × channel, zeros after the last channel.
pub fn planes<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>) {
    match cells_at_once::<E>(&args.geometry) {
        1 => runs::<C, E, false>(cta, args),
        _ => runs::<C, E, true>(cta, args),
    }
}

/// Cells of a thread: those of a stored word, which is then read once, where rows are whole words; otherwise one.
#[inline(always)]
pub fn cells_at_once<E: Element>(g: &Geometry) -> u32 {
    let sizes = [g.size[1], g.from.row, g.from.channel, g.from.image];
    let whole = g.from.col == 1 && sizes.iter().all(|size| size % E::PER_WORD == 0);
    if whole { E::PER_WORD } else { 1 }
}

/// A thread makes words of neighbouring cells: those of a stored word, or one.
#[inline(always)]
#[track_caller]
fn runs<C: Cta, E: Element, const WORDS: bool>(cta: &C, args: &SparseConvArgs<'_, E>) {
    let (g, t) = (&args.geometry, &args.tensor);
    let run = if WORDS { E::PER_WORD } else { 1 };
    let groups = g.filters / g.out_per_group;
    let cells = g.batch * groups * g.size[0] * g.size[1];
    let quads = t.bytes() / 4;
    let (all, cols) = (cells / run, g.size[1] / run);
    // A warp has eight neighbouring words of four neighbouring runs: whole sectors of both sides.
    each_of_grid(cta, all as u64 * quads as u64, |i| {
        let i = i as u32;
        let (number, quad) = (i / 8 % all, i / 8 / all * 8 + i % 8);
        let (rest, col) = (number / cols, number % cols * run);
        let (rest, row) = (rest / g.size[0], rest % g.size[0]);
        let (image, group) = (rest / groups, rest % groups);
        let mut stored = [E::Stored::default(); 4];
        let mut first = 0;
        for k in 0..4 / E::PIECE_BYTES {
            let channel = quad * (4 / E::PIECE_BYTES) + k;
            if channel < g.in_per_group {
                let channel = group * g.in_per_group + channel;
                let at = g.from.at(image, channel, row, col) as u32;
                stored[k as usize] = cta.load(args.x, (at / E::PER_WORD) as usize, Cache::Keep);
                first |= (at % E::PER_WORD) << (8 * k);
            }
        }
        for cell in 0..run {
            for piece in 0..E::PIECES as u32 {
                let word = word_of::<E>(&stored, first, (cell, piece));
                let at = (piece * cells + number * run + cell) * quads + quad;
                cta.write(args.planes_out, at as usize, f32::from_bits(word));
            }
        }
    });
}

/// The word of a cell and a piece: of each stored word number `cell` behind its first number, of which `first` has a byte.
#[inline(always)]
fn word_of<E: Element>(stored: &[E::Stored; 4], first: u32, (cell, piece): (u32, u32)) -> u32 {
    let width = 8 * E::PIECE_BYTES;
    let mask = u32::MAX >> (32 - width);
    let mut word = 0;
    for k in 0..4 / E::PIECE_BYTES {
        let number = (first >> (8 * k) & 0xff) + cell;
        let bits = E::bits(stored[k as usize], number);
        word |= (bits >> (width * piece) & mask) << (width * k);
    }
    word
}
