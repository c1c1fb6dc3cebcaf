//! The contract of the entries over tiles.

use super::check_ends;
use super::tiles::{GROUP, MOST_THREADS, SPARE, TileSlices, TilesManyArgs, TilesManyVariant};
use crate::cta::WARP;
use crate::fused::Product;
use crate::scalar::Real;
use crate::table::{Launch, Violation};

/// The contract of every entry over tiles.
pub(super) fn check<T: Real>(
    variant: &TilesManyVariant,
    launch: &Launch,
    args: &TilesManyArgs<'_, T>,
) -> Result<(), Violation> {
    let (m, n, k) = (args.rows as u64, args.cols as u64, args.sides.all as u64);
    let shared = variant.shared_bytes(args.cols, args.tile_rows, T::SIZE);
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_most("block", MOST_THREADS as u64, launch.block as u64)?;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    Violation::at_least("rows of a tile", 1, args.tile_rows as u64)?;
    let places = (1 << 16) - SPARE as u64;
    Violation::at_most("rows of a tile", places, args.tile_rows as u64)?;
    Violation::at_most("columns", places, n)?;
    let tiles = m.div_ceil(args.tile_rows as u64);
    if variant.product != Product::Transposed {
        check_slices(&args.by_row, tiles)?;
    }
    if variant.product != Product::Forward {
        check_slices(&args.by_column, tiles)?;
    }
    args.sides.check(u32::MAX)?;
    let groups = args.sides.count.div_ceil(variant.sides);
    Violation::at_least("groups of sides", 1, groups as u64)?;
    Violation::at_least("blocks", groups as u64, launch.grid as u64)?;
    let (from, to) = variant.product.lengths(m, n);
    check_ends(&args.ends_of(), from, to)?;
    let addend = match variant.product {
        Product::Forward => m.saturating_mul(k),
        _ => 0,
    };
    crate::fused::check_optional(&args.addend, "length of addend", addend)
}

fn check_slices<T>(slices: &TileSlices<'_, T>, tiles: u64) -> Result<(), Violation> {
    let lanes = WARP as u64;
    let of_slices = slices.offsets.len().saturating_sub(1) * lanes;
    let entries = slices.places.len() * GROUP as u64;
    Violation::equal("length of tiles", 2 * tiles + 1, slices.tiles.len())?;
    Violation::equal("length of outputs", of_slices, slices.outputs.len())?;
    Violation::at_least("length of places", lanes, slices.places.len())?;
    Violation::multiple_of("length of places", lanes, slices.places.len())?;
    Violation::equal("length of values", entries, slices.values.len())
}
