//! R of X where it lies on a GPU.

use super::batch::{Order, Piece};
use super::tall::{Dressing, TallQr};
use crate::ops::forms::Rows;
use crate::ops::{Matrix, Number, OpError};
use crate::plan::tall::MOST_TALL;

impl<T: Number> Matrix<T> {
    /// What stands in the way of [`triangle`](Self::triangle), in words that a message ends with; `None` where nothing does.
    pub fn no_triangle(&self) -> Option<&'static str> {
        match &self.forms.rows {
            Rows::Elsewhere(_) => Some("rows that several processes share"),
            Rows::Host(_) => Some("an X of the host"),
            Rows::Sparse(_) => Some("a sparse X on a GPU"),
            Rows::Dense(rows) if rows.whole().is_none() => Some("an X that streams"),
            Rows::Dense(_) if self.cols() == 0 => Some("an X without columns"),
            Rows::Dense(_) if self.cols() > MOST_TALL => Some("more than 32 columns on a GPU"),
            Rows::Dense(_) if self.is_reproducible() => {
                Some("the same bits on every device, of an X on a GPU")
            }
            Rows::Dense(_) => None,
        }
    }

    /// R of X with its rows [dressed](Dressing), by one read of it on the GPU that it lies on, and what was met on the way.
    /// With targets X has at most 31 columns.
    ///
    /// # Errors
    /// [`OpError::Qr`] for too many columns, [`OpError::Length`] where the dressing does not fit, [`OpError::NoVariant`] where
    /// there is [something in the way](Self::no_triangle), [`OpError::Device`] when memory is short.
    pub fn triangle(&self, dressing: &Dressing<'_, T>) -> Result<TallQr<T>, OpError> {
        let no_variant = || OpError::NoVariant {
            what: "R of X",
            wanted: self.no_triangle().unwrap_or("a dense X").to_owned(),
        };
        let Rows::Dense(rows) = &self.forms.rows else {
            return Err(no_variant());
        };
        let values = rows.whole().ok_or_else(no_variant)?;
        let piece = Piece {
            rows: self.rows(),
            cols: self.cols(),
            offset: 0,
            order: Order::RowMajor,
            ld: rows.ld,
        };
        let mut tall = match dressing.targets {
            Some(_) => TallQr::with_targets(self.device(), piece)?,
            None => TallQr::new(self.device(), piece)?,
        };
        tall.factor_dressed(values, dressing)?;
        Ok(tall)
    }
}
