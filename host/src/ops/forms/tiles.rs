//! Tiles of a sparse X: made once, used by every product with several right-hand sides.

use gpu_kernels::cta::WARP;
use gpu_kernels::fused::{Sides, TileSlices, TilesManyArgs, TilesManyVariant};
use gpu_kernels::{Entry, Family, In, Launch};

use super::site::Site;
use crate::device::{Buffer, Device, Prepared};
use crate::layout::tiles::{SliceLayout, TileLayout, TileSize};
use crate::matrix::CsrMatrix;
use crate::ops::catalog::{max_block, registers_on};
use crate::ops::{Number, OpError};
use crate::plan::fused::{Problem, Product};
use crate::plan::tiles::{TileCut, TilePasses, TileShape};

/// A [`TileLayout`] on a device.
pub(in crate::ops) struct Tiles<T> {
    shape: TileShape,
    by_row: DeviceSlices<T>,
    by_column: DeviceSlices<T>,
}

/// A [`SliceLayout`] on a device.
struct DeviceSlices<T> {
    tiles: Buffer<u32>,
    offsets: Buffer<u32>,
    outputs: Buffer<u32>,
    places: Buffer<u64>,
    values: Buffer<T>,
}

impl<T: Number> DeviceSlices<T> {
    fn upload(device: &Device, layout: &SliceLayout<T>) -> Result<Self, OpError> {
        Ok(DeviceSlices {
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

/// The vectors of a product with several right-hand sides, as kernels take them.
pub(in crate::ops) struct TileEnds<'a, T> {
    pub input: In<'a, T>,
    pub weights: In<'a, T>,
    pub shift: In<'a, T>,
    /// β and Z.
    pub addend: (T, In<'a, T>),
    pub alpha: T,
}

impl<T> Tiles<T> {
    /// Right-hand sides of a block, at most.
    pub(in crate::ops) fn sides(&self, product: Product) -> u32 {
        self.shape.cut(product.into()).sides
    }

    /// How many launches compute the fused product.
    pub(in crate::ops) fn passes(&self) -> TilePasses {
        self.shape.passes
    }
}

/// The shape of tiles for this many launches, or whatever number is expected to be faster; `None` where there is no room
/// for them, or nothing to store.
pub(in crate::ops) fn tile_shape(
    device: &Device,
    problem: &Problem,
    passes: Option<TilePasses>,
) -> Option<TileShape> {
    problem.nnz.filter(|nnz| *nnz > 0)?;
    let limits = device.limits()?;
    match passes {
        Some(passes) => TileShape::of(problem, passes, limits),
        None => TileShape::new(problem, limits),
    }
}

impl<T: Number> Tiles<T> {
    /// The tiles of `x`.
    pub(in crate::ops) fn of(
        device: &Device,
        x: &CsrMatrix<T>,
        shape: TileShape,
    ) -> Result<Self, OpError> {
        let size = |cut: TileCut| TileSize {
            rows: cut.rows as usize,
            packs: cut.packs(T::PRECISION),
        };
        let layout = TileLayout::new(x, (size(shape.by_row), size(shape.by_column)));
        Ok(Tiles {
            shape,
            by_row: DeviceSlices::upload(device, &layout.by_row)?,
            by_column: DeviceSlices::upload(device, &layout.by_column)?,
        })
    }

    /// The kernel of a product, ready to be launched for this many groups of sides.
    pub(in crate::ops) fn kernel(
        &self,
        site: &Site<T>,
        problem: &Problem,
        (product, groups): (Product, u32),
    ) -> Result<Prepared<T::TilesMany>, OpError> {
        let wanted = TilesManyVariant {
            product: product.into(),
            sides: self.sides(product),
        };
        let mut entries = T::TilesMany::entries().iter();
        let entry: &'static Entry<T::TilesMany> = entries
            .find(|entry| entry.variant == wanted)
            .expect("the table has every number of sides that shapes have");
        let registers = registers_on(&site.device, entry.name);
        let limits = site.device.limits();
        let limits = limits.expect("tiles are made for devices that launch, which have limits");
        let launch = Launch {
            grid: self
                .shape
                .grid(site.rows as u64, (wanted.product, groups), limits),
            block: max_block(registers) / WARP * WARP,
            shared_bytes: self.shape.shared_bytes(problem, wanted.product) as u32,
        };
        Ok(site.device.prepare(entry, launch)?)
    }

    /// The arguments for some groups of sides.
    pub(in crate::ops) fn args<'a>(
        &'a self,
        site: &Site<T>,
        ends: &TileEnds<'a, T>,
        (product, sides, output): (Product, Sides, &'a mut Buffer<T>),
    ) -> TilesManyArgs<'a, T> {
        TilesManyArgs {
            rows: site.rows as u32,
            cols: site.cols as u32,
            tile_rows: self.shape.cut(product.into()).rows,
            by_row: self.by_row.args(),
            by_column: self.by_column.args(),
            input: ends.input,
            weights: ends.weights,
            shift: ends.shift,
            addend: ends.addend.1,
            output: output.output(),
            alpha: ends.alpha,
            beta: ends.addend.0,
            sides,
        }
    }
}
