//! Entries over tiles of a sparse X, several right-hand sides.

use anyhow::{Context, Result};
use gpu_kernels::fused::{TileSlices, TilesManyArgs, TilesManyVariant};
use gpu_kernels::{Entry, Launch};
use warpfuse::layout::tiles::{SliceLayout, TileLayout, TileSize};
use warpfuse::matrix::{CsrMatrix, Features};
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Array, Launcher};
use warpfuse_tests::sample::Values;

use super::many::{Operands, argument, each_choice};
use super::{Shape, blocks, grids};

const SMALL: [Shape; 2] = [
    ((33, 7), Pattern::PerRow(3)),
    ((97, 300), Pattern::Growing(211)),
];
const LARGE: [Shape; 3] = [
    ((1, 1_000), Pattern::OneFull),
    ((1_000, 257), Pattern::Zipf(20)),
    ((3_000, 9), Pattern::OneColumn),
];

/// Runs one entry on tiles of few rows and of many.
pub fn check<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::TilesMany>,
    subset: Subset,
) -> Result<()> {
    let (shapes, tiles): (Vec<Shape>, &[usize]) = match subset {
        Subset::Full => ([&SMALL[..], &LARGE].concat(), &[32, 96, 2_048]),
        Subset::Small => (SMALL.to_vec(), &[64]),
    };
    for (shape, pattern) in shapes {
        let case = Case::new(shape, pattern, Values::Uniform);
        // One group of sides, and two.
        for most in [entry.variant.sides, 2 * entry.variant.sides] {
            each_choice::<L, T>(launcher, (entry.variant.product, most), &case, |operands| {
                let Features::Sparse(x) = &*operands.wide.samples[0].features else {
                    return Ok(());
                };
                tiles.iter().try_for_each(|rows| {
                    check_tiles(entry, (x, *rows), operands, subset)
                        .with_context(|| format!("{rows} rows in a tile"))
                })
            })?;
        }
    }
    Ok(())
}

fn check_tiles<L: Launcher, T: Number>(
    entry: &'static Entry<T::TilesMany>,
    (x, rows): (&CsrMatrix<T>, usize),
    operands: &Operands<'_, L, T>,
    subset: Subset,
) -> Result<()> {
    let variant: &TilesManyVariant = &entry.variant;
    let size = size_of::<T>() as u32;
    let packs = variant.sides * size / 16;
    let tile = TileSize { rows, packs };
    let layout = TileLayout::new(x, (tile, tile));
    let by_row = OnDevice::<L, T>::upload(operands.launcher, &layout.by_row)?;
    let by_column = OnDevice::<L, T>::upload(operands.launcher, &layout.by_column)?;
    let cols = x.cols() as u32;
    for block in blocks(operands.launcher, entry, subset)? {
        for &grid in grids(subset) {
            // A block for each group at least.
            let groups = operands.sides.count.div_ceil(variant.sides);
            let shape = Launch {
                grid: grid.max(groups),
                block,
                shared_bytes: variant.shared_bytes(cols, rows as u32, size) as u32,
            };
            let (alpha, beta) = operands.scalars();
            operands.check(entry.name, shape, |output| {
                let args = TilesManyArgs {
                    rows: x.rows() as u32,
                    cols,
                    tile_rows: rows as u32,
                    by_row: by_row.args(),
                    by_column: by_column.args(),
                    input: operands.input.input(),
                    weights: argument(&operands.weights),
                    shift: argument(&operands.shift),
                    addend: argument(&operands.addend),
                    output: output.output(),
                    alpha,
                    beta,
                    sides: operands.sides,
                };
                operands.launcher.launch(entry, shape, args)
            })?;
        }
    }
    Ok(())
}

/// A [`SliceLayout`] on a device.
struct OnDevice<L: Launcher, T: Number> {
    tiles: L::Array<u32>,
    offsets: L::Array<u32>,
    outputs: L::Array<u32>,
    places: L::Array<u64>,
    values: L::Array<T>,
}

impl<L: Launcher, T: Number> OnDevice<L, T> {
    // The contract takes the lengths from the arrays.
    fn upload(launcher: &L, layout: &SliceLayout<T>) -> Result<Self> {
        Ok(OnDevice {
            tiles: launcher.upload(&layout.tiles)?,
            offsets: launcher.upload(&layout.offsets)?,
            outputs: launcher.upload(&layout.outputs)?,
            places: launcher.upload(&layout.places)?,
            values: launcher.upload(&layout.values)?,
        })
    }

    fn args(&self) -> TileSlices<'_, T> {
        TileSlices {
            tiles: self.tiles.input(),
            offsets: self.offsets.input(),
            outputs: self.outputs.input(),
            places: self.places.input(),
            values: self.values.input(),
        }
    }
}
