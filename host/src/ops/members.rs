//! X of which members of a group have rows on GPUs of their own.
//!
//! Each member has a matrix of its rows on its device, in whatever form suits it there; vectors of m elements are whole on
//! every member, and products read and write windows of them. What rows have in common is added on the devices.
//!
//! Sums that are promised to repeat are fixed-point numbers of one scale where X is sparse, and exact in any order
//! ([`Site::together`](super::forms::Site)). Those over a dense X have the order of the rows, in which a sum goes from member
//! to member: the CPU's code does that, on rows that the host keeps.
//!
//! Nothing here knows what a matrix is: products, objectives and the rest see to their own.

use std::ops::Deref;
use std::sync::OnceLock;

use super::share::Share;
use super::{Number, OpError};
use crate::device::buffer::Window;
use crate::device::group::{Group, Summand};
use crate::device::{Buffer, Device};
use crate::matrix::ColumnMoments;

/// One member's rows on a GPU, and which of all they are.
pub(super) struct Members<M> {
    share: Share,
    /// A matrix of its rows, on the same device without a group.
    pub(super) own: M,
    /// The same on the host, where sums over a dense X are promised to repeat.
    pub(super) on_host: Option<M>,
    /// Whether sums are promised to repeat: products add up what members have by themselves.
    pub(super) repeats: bool,
    /// Whether members have agreed on slices of columns, or on none.
    pub(super) has_agreed: bool,
    /// Whether objectives are computed in one pass by all members.
    in_one_pass: OnceLock<bool>,
}

/// A member's elements of a vector.
pub(super) enum Part<'a, T> {
    There(Window<'a, T>),
    /// Where kernels cannot read from the first of them on.
    Copied(Buffer<T>),
}

impl<T> Deref for Part<'_, T> {
    type Target = Buffer<T>;

    fn deref(&self) -> &Buffer<T> {
        match self {
            Part::There(window) => window,
            Part::Copied(copy) => copy,
        }
    }
}

impl<M> Members<M> {
    pub(super) fn new(share: Share, (own, on_host): (M, Option<M>), repeats: bool) -> Self {
        Members {
            share,
            own,
            on_host,
            repeats,
            has_agreed: false,
            in_one_pass: OnceLock::new(),
        }
    }

    pub(super) fn group(&self) -> &Group {
        self.share.group()
    }

    /// The elements of its rows, of `k` for every row of all.
    pub(super) fn part<'v, T: Number>(
        &self,
        all: &'v Buffer<T>,
        k: usize,
    ) -> Result<Part<'v, T>, OpError> {
        let range = self.share.elements(k);
        Ok(match all.window(&range) {
            Some(window) => Part::There(window),
            None => Part::Copied(all.copy_of(&range)?),
        })
    }

    pub(super) fn optional_part<'v, T: Number>(
        &self,
        all: Option<&'v Buffer<T>>,
        k: usize,
    ) -> Result<Option<Part<'v, T>>, OpError> {
        all.map(|all| self.part(all, k)).transpose()
    }

    /// Has `work` write the elements of its rows.
    pub(super) fn write_part<T: Number, R>(
        &self,
        all: &mut Buffer<T>,
        k: usize,
        work: impl FnOnce(&mut Buffer<T>) -> Result<R, OpError>,
    ) -> Result<R, OpError> {
        let range = self.share.elements(k);
        if let Some(mut window) = all.window_mut(&range) {
            return work(&mut window);
        }
        let mut copy = all.copy_of(&range)?;
        let result = work(&mut copy)?;
        all.put(range.start, &copy)?;
        Ok(result)
    }

    /// Has `work` write a part of `k` elements for each row, if there is such a vector.
    pub(super) fn writing<T: Number>(
        &self,
        all: Option<&mut Buffer<T>>,
        k: usize,
        work: impl FnOnce(Option<&mut Buffer<T>>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        match all {
            Some(all) => self.write_part(all, k, |part| work(Some(part))),
            None => work(None),
        }
    }

    /// β·z is added once.
    pub(super) fn addend<'v, T>(
        &self,
        addend: Option<(T, &'v Buffer<T>)>,
    ) -> Option<(T, &'v Buffer<T>)> {
        addend.filter(|_| self.group().is_first())
    }

    /// Adds up what members have.
    pub(super) fn sum(&self, buffers: &mut [&mut dyn Summand]) -> Result<(), OpError> {
        Ok(self.group().sum_together(buffers)?)
    }

    /// Adds up what members have of a vector that belongs to the columns, or of this one's share of it where that is all that is
    /// wanted.
    pub(super) fn sum_columns<T: Number>(&self, w: &mut Buffer<T>) -> Result<(), OpError> {
        match self.share.wish().of(w.len()) {
            Some(shares) => Ok(self.group().sum_shares(&mut [w], &shares)?),
            None => self.sum(&mut [w]),
        }
    }

    /// Whether a share of a vector of `len` elements is all that is wanted.
    pub(super) fn wants_share(&self, len: usize) -> bool {
        self.share.wish().of(len).is_some()
    }

    /// Completes a vector of `k` elements for every row of all, of which each member has those of its rows.
    pub(super) fn gather<T: Number>(&self, all: &mut Buffer<T>, k: usize) -> Result<(), OpError> {
        let lengths: Vec<usize> = self.share.counts().iter().map(|rows| rows * k).collect();
        Ok(self.group().gather_on_devices(all, &lengths)?)
    }

    /// Whether objectives are computed in one pass by all members: all of them end a solve in the same way.
    pub(super) fn in_one_pass(&self, own: bool) -> Result<bool, OpError> {
        if let Some(known) = self.in_one_pass.get() {
            return Ok(*known);
        }
        let all = self.all(own)?;
        Ok(*self.in_one_pass.get_or_init(|| all))
    }

    /// The sums of all members, of whom this one has `device`.
    pub(super) fn moments(
        &self,
        device: &Device,
        own: Option<ColumnMoments>,
    ) -> Result<Option<ColumnMoments>, OpError> {
        let is_there = self.all(own.is_some())?;
        let Some(own) = own.filter(|_| is_there) else {
            return Ok(None);
        };
        joined_moments((self.group(), device), own).map(Some)
    }

    /// Whether something holds for every member.
    pub(super) fn all(&self, own: bool) -> Result<bool, OpError> {
        let mut exceptions = [u64::from(!own)];
        self.group().sum(&mut exceptions)?;
        Ok(exceptions == [0])
    }
}

/// The sums of all members of a group, of whom this one has `device`: by way of the devices, on which hundreds of megabytes
/// take milliseconds where hosts take seconds. Their order is not that of the rows.
pub(crate) fn joined_moments(
    (group, device): (&Group, &Device),
    own: ColumnMoments,
) -> Result<ColumnMoments, OpError> {
    let of_all = |own: Vec<f64>| -> Result<Vec<f64>, OpError> {
        let mut sums = device.upload(&own)?;
        group.sum_on_devices(&mut sums)?;
        Ok(sums.to_vec()?)
    };
    Ok(ColumnMoments {
        sum: of_all(own.sum)?,
        sum_of_squares: of_all(own.sum_of_squares)?,
    })
}
