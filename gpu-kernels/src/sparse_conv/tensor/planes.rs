//! Inputs as byte planes.

use super::super::args::{SparseConvArgs, value_at};
use super::super::element::Element;
use crate::cta::Cta;
use crate::verbs::each_of_grid;

/// Byte planes of the inputs: piece × image × group × row × column × channel, zeros after the last channel.
pub fn planes<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>) {
    cta.let_next_begin();
    let (g, t) = (&args.geometry, &args.tensor);
    let groups = g.filters / g.out_per_group;
    let cells = g.batch * groups * g.size[0] * g.size[1];
    let quads = t.channels() / 4;
    // A warp has eight neighbouring words of four neighbouring cells: whole sectors of both sides.
    each_of_grid(cta, cells as u64 * quads as u64, |i| {
        let i = i as u32;
        let (cell, quad) = (i / 8 % cells, i / 8 / cells * 8 + i % 8);
        let (rest, col) = (cell / g.size[1], cell % g.size[1]);
        let (rest, row) = (rest / g.size[0], rest % g.size[0]);
        let (image, group) = (rest / groups, rest % groups);
        let mut words = [0_u32; 2];
        for k in 0..4 {
            let channel = quad * 4 + k;
            if channel < g.in_per_group {
                let channel = group * g.in_per_group + channel;
                let at = g.from.at(image, channel, row, col);
                let value = E::integer(value_at(cta, args, at)) as u32;
                words[0] |= (value & 0xff) << (8 * k);
                words[1] |= (value >> 8 & 0xff) << (8 * k);
            }
        }
        for (piece, word) in words.into_iter().enumerate().take(E::PIECES) {
            let at = (piece as u32 * cells + cell) * quads + quad;
            cta.write(args.planes_out, at as usize, f32::from_bits(word));
        }
    });
}
