//! Tiles of the tensor strategy.

use gpu_kernels::sparse_conv::{CHUNK_PARTS, TILE_CELLS, TILE_FILTERS, TensorGeometry};

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
    /// Bytes of a weight.
    pub weights: u32,
    /// Teams of a block.
    pub teams: u32,
}

/// Columns of a tile that are tried.
const WIDTHS: [u32; 5] = [32, 16, 64, 8, 128];
/// Channels of a part that are tried, the most first: fewer barriers.
const PARTS: [u32; 4] = [256, 128, 64, 32];

/// The tiles with the fewest blocks, then with the fewest inputs, for inputs of this many bytes and weights of this many;
/// `None` where no tile's inputs fit in shared memory, or tensor cores are missing.
pub fn tiles(shape: &ConvShape, pieces: [usize; 2], limits: &DeviceLimits) -> Option<TensorTiles> {
    if limits.compute_capability.major < 8 || pieces.contains(&0) || shape.sums() == 0 {
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
    [pieces, weights]: [usize; 2],
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
    let cells = rows.checked_mul(cols)? as u64;
    let channels = (shape.channels / shape.groups) as u32;
    let fits = |part: &u32| {
        let held = channels.div_ceil(*part).min(CHUNK_PARTS) * part + 16;
        let bytes = (pieces as u64)
            .checked_mul(cells)?
            .checked_mul(held.into())?;
        // As many parts as a chunk has: the first is multiplied while the others arrive.
        let suits = *part == 32 || *part * CHUNK_PARTS <= channels;
        (bytes <= limits.shared_per_block.into() && suits).then_some(*part)
    };
    let part = PARTS.iter().find_map(fits)?;
    let parts = channels.div_ceil(part);
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
            tile,
            inputs: [rows as u32, cols as u32],
            tiles: covered,
            filter_tiles,
            part,
            parts,
            pitch: (parts.min(CHUNK_PARTS) * part + 16) / 4,
        },
        pools,
        blocks,
        weights: weights as u32,
        teams: teams(pieces * weights, blocks, limits),
    })
}

/// Teams of a block. Of four products of bytes, sums leave registers for two teams. Of two products they leave room for one
/// block of an SM anyway. Of one product an SM holds two blocks of two teams, or one of four.
fn teams(products: usize, blocks: u64, limits: &DeviceLimits) -> u32 {
    match products {
        1 if blocks > limits.sms.into() => 2,
        1 | 2 => 4,
        _ => 2,
    }
}
