//! Sparse convolutional layers: shapes, tiles of tensor cores, and which kernel is expected to be fastest.

mod choice;
mod costs;
mod shape;
mod space;
mod staged;
mod tensor;
#[cfg(test)]
mod tests;

pub use choice::{ConvPlan, ConvStrategy, ConvWork, Tiles, plan, plan_with};
pub use shape::{ConvShape, ConvShapeError, MapLayout, Pool, PoolKind};
pub use space::{points, space};
pub use staged::{SkipBands, StagedTiles, skip_bands, staged_tiles};
pub use tensor::{TensorTiles, tiles};
