//! Tiles of the tensor strategy.

use gpu_kernels::sparse_conv::{
    CHUNK_PARTS, Pieces, TILE_CELLS, TILE_FILTERS, TensorGeometry, staged_bytes,
};

use super::shape::ConvShape;
use crate::plan::limits::DeviceLimits;

/// How the tensor strategy cuts a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorTiles {
    /// What kernels get.
    pub geometry: TensorGeometry,
    /// Whether tiles hold whole windows, so that pooling is fused.
    pub pools: bool,
    /// Blocks.
    pub blocks: u64,
    /// How numbers are taken.
    pub pieces: Pieces,
    /// Teams of a block.
    pub teams: u32,
}

/// Columns of a tile that are tried.
const WIDTHS: [u32; 5] = [32, 16, 64, 8, 128];
/// Bytes of a part's channels that are tried, the most first: fewer barriers.
const PARTS: [u32; 4] = [256, 128, 64, 32];

/// The tiles with the fewest blocks, then with the fewest inputs; `None` where no tile's inputs fit in shared memory, or tensor cores are missing.
pub fn tiles(shape: &ConvShape, pieces: Pieces, limits: &DeviceLimits) -> Option<TensorTiles> {
    if limits.compute_capability.major < 8 || shape.sums() == 0 {
        return None;
    }
    let candidates = WIDTHS
        .into_iter()
        .filter_map(|width| tile(shape, width, pieces, limits));
    candidates.min_by_key(|tiles| (!tiles.pools, tiles.blocks, tiles.geometry.cells()))
}

fn tile(
    shape: &ConvShape,
    width: u32,
    pieces: Pieces,
    limits: &DeviceLimits,
) -> Option<TensorTiles> {
    let tile = [TILE_CELLS / width, width];
    let inputs = [0, 1].map(|axis| {
        let reach = (shape.kernel[axis] - 1) * shape.dilation[axis] + 1;
        (tile[axis] as usize - 1)
            .checked_mul(shape.stride[axis])?
            .checked_add(reach)
    });
    let [Some(rows), Some(cols)] = inputs else {
        return None;
    };
    let cells = rows.checked_mul(cols)?;
    let channels = (shape.channels / shape.groups) as u64 * u64::from(pieces.bytes);
    let geometry = |part: &u32| {
        let parts = channels.div_ceil((*part).into()) as u32;
        TensorGeometry {
            tile,
            inputs: [rows as u32, cols as u32],
            part: *part,
            parts,
            pitch: (parts.min(CHUNK_PARTS) * part + 16) / 4,
            ..TensorGeometry::default()
        }
    };
    let fits = |part: &u32| {
        // As many parts as a chunk has: the first is multiplied while the others arrive.
        let suits = *part == 32 || u64::from(*part * CHUNK_PARTS) <= channels;
        // No product below overflows with as many cells.
        let few = cells <= limits.shared_per_block as usize;
        suits
            && few
            && staged_bytes(&geometry(part), pieces.inputs.into()) <= limits.shared_per_block.into()
    };
    let geometry = geometry(PARTS.iter().find(|part| fits(part))?);
    let maps = (shape.batch * shape.groups * shape.size[0] * shape.size[1]) as u64;
    let words = maps * u64::from(geometry.bytes() / 4) * u64::from(pieces.inputs);
    if words >= u32::MAX.into() {
        return None;
    }
    let out = shape.out();
    let covered = [0, 1].map(|axis| (out[axis] as u32).div_ceil(tile[axis]));
    let filter_tiles = (shape.filters / shape.groups).div_ceil(TILE_FILTERS as usize) as u32;
    let pools = shape.pool.is_none_or(|pool| {
        let whole = [0, 1].map(|axis| (tile[axis] as usize).is_multiple_of(pool.window[axis]));
        pool.is_side_by_side() && whole == [true; 2]
    });
    let of_image = u64::from(covered[0]) * u64::from(covered[1]);
    let blocks = shape.batch as u64 * of_image * shape.groups as u64 * u64::from(filter_tiles);
    Some(TensorTiles {
        geometry: TensorGeometry {
            tiles: covered,
            filter_tiles,
            ..geometry
        },
        pools,
        blocks,
        pieces,
        teams: teams(pieces.inputs * pieces.weights, blocks, limits),
    })
}

/// Teams of a block. Of four products of bytes, sums leave registers for two teams. Of two products they leave room for one
/// block of an SM anyway. Of one product an SM holds two blocks of two teams, or one of four.
fn teams(products: u32, blocks: u64, limits: &DeviceLimits) -> u32 {
    match products {
        1 if blocks > limits.sms.into() => 2,
        1 | 2 => 4,
        _ => 2,
    }
}
