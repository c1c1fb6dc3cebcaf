//! Further forms that a device makes of the rows that lie on it.

use std::sync::Arc;

use super::hot::HotColumns;
use super::panels::Panels;
use super::rows::SparsePart;
use super::site::Site;
use super::transpose::Transpose;
use super::{Forms, Making, Rows};
use crate::ops::{Number, OpError};
use crate::plan::fused::{Problem, Stored};

/// Rows with entries that are one part.
fn whole<T: Number>(parts: &[SparsePart<T>]) -> Option<&SparsePart<T>> {
    match parts {
        [x] if x.block().entries() > 0 => Some(x),
        _ => None,
    }
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
                let make = |parts: &[SparsePart<T>]| {
                    let all = whole(parts).map(|x| (x, site.cols));
                    let made = |x| HotColumns::of_rows(&site.device, x, (size, values));
                    all.map(made).transpose()
                };
                let made = rows.on_device(make)?.flatten();
                made.map(|made| self.with_hot_columns(made, problem))
            }
            Making::Panels => {
                let make = |parts: &[SparsePart<T>]| match whole(parts) {
                    Some(x) => Panels::of_rows(site, x),
                    None => Ok(None),
                };
                let made = rows.on_device(make)?.flatten();
                made.map(|made| {
                    self.panels = Some(Arc::new(made));
                    problem.with_stored(Stored::RowsAndPanels)
                })
            }
            Making::Transpose => {
                let make = |parts: &[SparsePart<T>]| match whole(parts) {
                    Some(x) => Transpose::of_rows(site, x),
                    None => Ok(None),
                };
                let made = rows.on_device(make)?.flatten();
                made.map(|made| {
                    self.transpose = Some(Arc::new(made));
                    problem.with_stored(Stored::RowsAndTranspose)
                })
            }
            Making::Sell | Making::Tiles(_) => None,
        })
    }
}
