//! Sparse convolutional layers: shapes, tiles of tensor cores, and which kernel is expected to be fastest.

mod choice;
mod shape;
mod tensor;
#[cfg(test)]
mod tests;

pub use choice::{ConvPlan, ConvStrategy, ConvWork, plan, plan_with};
pub use shape::{ConvShape, ConvShapeError, MapLayout, Pool, PoolKind};
pub use tensor::{TensorTiles, tiles};
