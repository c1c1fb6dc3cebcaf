//! What a matrix keeps for products with several right-hand sides.

use std::sync::Mutex;

use super::super::Number;
use super::super::kept::Kept;
use crate::device::{Buffer, Prepared};
use crate::plan::fused::Product;

/// The launches of a matrix for groups of sides, planned and prepared when first used.
pub(in crate::ops) struct ManyLaunches<T: Number> {
    pub(super) sparse: Kept<(Product, u32), Prepared<T::SparseMany>>,
    pub(super) dense: Kept<(Product, u32), Option<DenseLaunch<T>>>,
    pub(super) tiles: Kept<(Product, u32), Prepared<T::TilesMany>>,
    /// P between the two halves.
    pub(super) between: Mutex<Option<Buffer<T>>>,
}

impl<T: Number> Default for ManyLaunches<T> {
    fn default() -> Self {
        ManyLaunches {
            sparse: Kept::default(),
            dense: Kept::default(),
            tiles: Kept::default(),
            between: Mutex::new(None),
        }
    }
}

/// The launch of each panel of a dense X.
pub(super) struct DenseLaunch<T: Number> {
    pub(super) kernel: Prepared<T::DenseMany>,
    /// Columns of a panel.
    pub(super) panel: u64,
}

impl<T: Number> Clone for DenseLaunch<T> {
    fn clone(&self) -> Self {
        DenseLaunch {
            kernel: self.kernel.clone(),
            panel: self.panel,
        }
    }
}
