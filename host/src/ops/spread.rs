//! Vectors of n elements of which each member of a group keeps a share.
//!
//! Members that have rows of X each have all columns of it, so that work on vectors of n elements, the same for all, takes
//! them as long as it takes one. Where that is worth it, a member does it for its share of the elements alone: products
//! [leave](super::Matrix::in_shares) the sums of its share, half of what a whole sum takes, and what products read is gathered
//! before them, the other half. Scalar products are sums of [pieces](crate::cpu::grid::Pieces), of which a share has whole ones, so
//! that they have the bits of one member's.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::{Number, OpError};
use crate::cpu::grid::Pieces;
use crate::device::group::{Group, Shares};
use crate::device::{Buffer, DeviceError};
use crate::parallel::locked;

/// Which elements of a vector are a member's.
#[derive(Debug, Clone)]
pub struct Spread {
    group: Group,
    shares: Shares,
}

impl Spread {
    /// Whole pieces for each member of a group; `None` where a vector of `len` elements is of one.
    pub(super) fn over(group: &Group, len: usize) -> Option<Spread> {
        let pieces = Pieces::of(len);
        (pieces.count > 1).then(|| Spread {
            group: group.clone(),
            shares: Shares::of_pieces(len, pieces.elements, group.size()),
        })
    }

    /// The members.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The elements of all.
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// This member's elements.
    pub fn own(&self) -> Range<usize> {
        self.shares.of(self.group.rank())
    }

    /// Completes a vector of which each member has its elements.
    pub(super) fn gather<T: Number>(&self, vector: &mut Buffer<T>) -> Result<(), OpError> {
        Ok(self.group.gather_shares(vector, &self.shares)?)
    }
}

/// Of which columns members want the sums of a product, for as long as it is computed. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Wish(Arc<Mutex<Option<Shares>>>);

impl Wish {
    /// The shares of a vector of `len` elements, if those are wanted.
    pub(super) fn of(&self, len: usize) -> Option<Shares> {
        locked(&self.0).filter(|shares| shares.columns() == len)
    }

    pub(super) fn set(&self, shares: Option<Shares>) {
        *locked(&self.0) = shares;
    }
}

/// Copies `range` of a vector into one that is as long as it.
pub(super) fn copy_part<T: Number>(
    from: &Buffer<T>,
    range: &Range<usize>,
    to: &mut Buffer<T>,
) -> Result<(), DeviceError> {
    if let Some(part) = from.window(range) {
        return to.copy_from(&part);
    }
    match from.as_host_slice() {
        Some(values) => to.copy_from_slice(&values[range.clone()]),
        None => to.copy_from(&from.copy_of(range)?),
    }
}
