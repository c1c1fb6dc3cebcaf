//! A tile's inputs in shared memory.

use super::super::args::{SparseConvArgs, TensorGeometry};
use super::super::element::Element;
use super::sums::sum_bytes;
use super::tile::{CHUNK_PARTS, Tile, split};
use crate::cta::{Cta, Shared};
use crate::scalar::Word;

/// A cell outside the image.
const OUTSIDE: u32 = u32::MAX;

/// Where the first words of staged cells lie in a piece of the planes: behind the staged words.
#[inline(always)]
fn places<E: Element>(t: &TensorGeometry) -> Shared<u32> {
    Shared::at(E::PIECES as u32 * t.cells() * t.pitch * 4, t.cells())
}

/// Finds where cells lie, once for all channels.
#[inline(always)]
#[track_caller]
pub(super) fn place_cells<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>, tile: Tile) {
    let (g, t) = (&args.geometry, &args.tensor);
    let groups = g.filters / g.out_per_group;
    let top = (tile.row * g.stride[0]) as i32 - g.padding[0] as i32;
    let left = (tile.col * g.stride[1]) as i32 - g.padding[1] as i32;
    let map = (tile.image * groups + tile.group) * g.size[0];
    let mut cell = cta.thread();
    while cell < t.cells() {
        let (row, col) = (cell / t.inputs[1], cell % t.inputs[1]);
        let (y, x) = ((top + row as i32) as u32, (left + col as i32) as u32);
        let place = if y < g.size[0] && x < g.size[1] {
            ((map + y) * g.size[1] + x) * (t.bytes() / 4)
        } else {
            OUTSIDE
        };
        cta.shared_write(places::<E>(t), cell as usize, place);
        cell += cta.threads();
    }
}

/// Begins to copy the inputs of a part of the channels.
#[inline(always)]
#[track_caller]
fn stage<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>, (part, slot): (u32, u32)) {
    let (g, t) = (&args.geometry, &args.tensor);
    let all = g.batch * (g.filters / g.out_per_group) * g.size[0] * g.size[1] * (t.bytes() / 4);
    let staged: Shared<f32> = Shared::at(0, E::PIECES as u32 * t.cells() * t.pitch);
    let (first, pack) = split(cta.thread(), t.part / 16);
    let (from, to) = (part * t.part / 4 + pack * 4, slot * t.part / 4 + pack * 4);
    let mut cell = first;
    while cell < t.cells() {
        let place = cta.shared_read(places::<E>(t), cell as usize);
        let present = place != OUTSIDE;
        let place = if present { place } else { 0 };
        for piece in 0..E::PIECES as u32 {
            let i = piece * all + place + from;
            let j = (piece * t.cells() + cell) * t.pitch + to;
            cta.copy_whole_pack(staged, j as usize, args.planes, i as usize, present);
        }
        cell += split(cta.threads(), t.part / 16).0;
    }
}

/// Waits until a part of the channels is in shared memory; the first of a chunk begins to copy all of it, and the second
/// waits for all: teams that wait for each other are held up by the last.
#[inline(always)]
#[track_caller]
pub(super) fn arrive<C: Cta, E: Element>(cta: &C, args: &SparseConvArgs<'_, E>, part: u32) {
    let t = &args.tensor;
    let slot = part % CHUNK_PARTS;
    if slot == 0 {
        cta.sync();
        for slot in 0..CHUNK_PARTS {
            if part + slot < t.parts {
                stage(cta, args, (part + slot, slot));
            }
            cta.end_copies();
        }
    }
    match slot {
        0 => cta.copies_done::<{ CHUNK_PARTS - 1 }>(),
        1 => cta.copies_done::<0>(),
        _ => return,
    }
    cta.sync();
}

/// Bytes of shared memory of a block of some teams.
pub fn tensor_shared_bytes<E: Element>(t: &TensorGeometry, teams: u32) -> u64 {
    let sums = teams * sum_bytes(<E::Acc as Word>::SIZE);
    staged_bytes(t, E::PIECES as u64).max(sums as u64)
}

/// Bytes of a tile's inputs, and of where they come from.
pub const fn staged_bytes(t: &TensorGeometry, pieces: u64) -> u64 {
    (pieces * t.pitch as u64 + 1) * t.cells() as u64 * 4
}
