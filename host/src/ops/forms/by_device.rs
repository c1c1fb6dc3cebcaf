//! Further forms that a device makes of the rows that lie on it.

use std::sync::Arc;

use super::hot::HotColumns;
use super::panels::Panels;
use super::rows::{SparsePart, SparseRows};
use super::site::Site;
use super::transpose::Transpose;
use super::{Forms, Making, Rows};
use crate::ops::{Number, OpError};
use crate::plan::fused::{Problem, Stored};

/// The transpose of rows on a device, made there beside all other forms; `None` where it cannot be in one piece.
pub(in crate::ops) fn transpose_of<T: Number>(
    rows: &SparseRows<T>,
    site: &Site<T>,
) -> Result<Option<Transpose<T>>, OpError> {
    of_whole(rows, |x| Transpose::of_rows(site, x))
}

/// What `make` makes of rows with entries that are one part on the device; `None` of others.
fn of_whole<T: Number, R>(
    rows: &SparseRows<T>,
    make: impl FnOnce(&SparsePart<T>) -> Result<Option<R>, OpError>,
) -> Result<Option<R>, OpError> {
    let made = rows.on_device(|parts| match parts {
        [x] if x.block().entries() > 0 => make(x),
        _ => Ok(None),
    })?;
    Ok(made.flatten())
}

impl<T: Number> Forms<T> {
    /// [`Forms::make`] on the device where the rows lie, or to which they cross for it; `None` where the device has no kernels
    /// for it, and for rows without entries or in several parts.
    pub(in crate::ops) fn make_on_device(
        &mut self,
        making: Making,
        (site, problem): (&Site<T>, Problem),
    ) -> Result<Option<Problem>, OpError> {
        let Rows::Sparse(rows) = &self.rows else {
            return Ok(None);
        };
        Ok(match making {
            Making::HotColumns(size, values) => {
                let size = (size, values);
                let made = of_whole(rows, |x| {
                    HotColumns::of_rows(&site.device, (x, site.cols), size).map(Some)
                })?;
                made.map(|made| self.with_hot_columns(made, problem))
            }
            Making::Panels => {
                let made = of_whole(rows, |x| Panels::of_rows(site, x))?;
                made.map(|made| {
                    self.panels = Some(Arc::new(made));
                    problem.with_stored(Stored::RowsAndPanels)
                })
            }
            Making::Transpose => {
                let made = of_whole(rows, |x| Transpose::of_rows(site, x))?;
                made.map(|made| {
                    self.transpose = Some(Arc::new(made));
                    problem.with_stored(Stored::RowsAndTranspose)
                })
            }
            Making::Sell | Making::Tiles(_) => None,
        })
    }
}
