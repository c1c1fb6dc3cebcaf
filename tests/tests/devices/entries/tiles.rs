//! Entries over tiles of a sparse X, several right-hand sides.

use anyhow::{Context, Result};
use gpu_kernels::fused::{TileSlices, TilesManyArgs, TilesManyVariant};
use gpu_kernels::{Entry, Launch};
use warpfuse::device::{Buffer, Device};
use warpfuse::layout::tiles::{SliceLayout, TileLayout, TileSize};
use warpfuse::matrix::{CsrMatrix, Features};
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::launch;
use warpfuse_tests::sample::Values;

use super::many::{Operands, each_choice};
use super::{Shape, launches};

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
pub fn check<T: Number>(
    device: &Device,
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
            each_choice::<T>(device, (entry.variant.product, most), &case, |operands| {
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

fn check_tiles<T: Number>(
    entry: &'static Entry<T::TilesMany>,
    (x, rows): (&CsrMatrix<T>, usize),
    operands: &Operands<'_, T>,
    subset: Subset,
) -> Result<()> {
    let variant: &TilesManyVariant = &entry.variant;
    let packs = variant.sides * T::SIZE / 16;
    let tile = TileSize { rows, packs };
    let layout = TileLayout::new(x, (tile, tile));
    let device = operands.device;
    let by_row = OnDevice::upload(device, &layout.by_row)?;
    let by_column = OnDevice::upload(device, &layout.by_column)?;
    let cols = x.cols() as u32;
    let shared = variant.shared_bytes(cols, rows as u32, T::SIZE);
    // A block for each group at least.
    let groups = operands.sides.count.div_ceil(variant.sides);
    for shape in launches(device, entry, subset, |_| shared)? {
        let shape = Launch {
            grid: shape.grid.max(groups),
            ..shape
        };
        operands.check(entry.name, shape, |output| {
            let given = operands.given();
            let args = TilesManyArgs {
                rows: x.rows() as u32,
                cols,
                tile_rows: rows as u32,
                by_row: by_row.args(),
                by_column: by_column.args(),
                input: given.input,
                weights: given.weights,
                shift: given.shift,
                addend: given.addend,
                output: output.output(),
                alpha: given.alpha,
                beta: given.beta,
                sides: operands.sides,
            };
            launch(device, entry, shape, args)
        })?;
    }
    Ok(())
}

/// A [`SliceLayout`] on a device.
struct OnDevice<T> {
    tiles: Buffer<u32>,
    offsets: Buffer<u32>,
    outputs: Buffer<u32>,
    places: Buffer<u64>,
    values: Buffer<T>,
}

impl<T: Number> OnDevice<T> {
    // The contract takes the lengths from the arrays.
    fn upload(device: &Device, layout: &SliceLayout<T>) -> Result<Self> {
        Ok(OnDevice {
            tiles: device.upload(&layout.tiles)?,
            offsets: device.upload(&layout.offsets)?,
            outputs: device.upload(&layout.outputs)?,
            places: device.upload(&layout.places)?,
            values: device.upload(&layout.values)?,
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
