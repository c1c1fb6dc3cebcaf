//! Which columns are whose, where members of a group keep a share of them each.

use std::ops::Range;
use std::time::Instant;

use super::communicator::Communicator;
use super::number::GroupNumber;
use super::pieces::{combined, gathered};
use super::roll_call::Operation;
use super::{Group, GroupError};

/// Columns that members of a group have shared out, one after the other in the order of the ranks: as many for each, and for the
/// last member also those that are left over. A member may have none.
///
/// ```
/// use warpfuse::device::group::Shares;
/// let three = Shares::even(11, 3);
/// assert_eq!([0, 1, 2].map(|rank| three.of(rank)), [0..3, 3..6, 6..11]);
/// assert_eq!(Shares::even(2, 3).of(0), 0..0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    columns: usize,
    each: usize,
    size: usize,
}

impl Shares {
    /// As many columns for each of `size` members as there can be.
    ///
    /// # Panics
    /// When there are no members.
    pub fn even(columns: usize, size: usize) -> Shares {
        Shares::of_pieces(columns, 1, size)
    }

    /// Whole pieces of this many columns for each of `size` members; the rest is the last one's, and has the last column.
    ///
    /// ```
    /// use warpfuse::device::group::Shares;
    /// let two = Shares::of_pieces(100, 32, 2);
    /// assert_eq!((two.of(0), two.of(1)), (0..32, 32..100));
    /// ```
    ///
    /// # Panics
    /// When there are no members, or pieces have no columns.
    pub fn of_pieces(columns: usize, piece: usize, size: usize) -> Shares {
        assert!(
            size > 0 && piece > 0,
            "shares are of members, and of pieces"
        );
        // A single column may be all of one: then the rest has another.
        let whole = match piece {
            1 => columns,
            _ => columns.saturating_sub(1) / piece,
        };
        Shares {
            columns,
            each: whole / size * piece,
            size,
        }
    }

    /// The same shares without the last columns, which are the last member's.
    ///
    /// # Panics
    /// When other members have some of those.
    pub fn of_first(self, columns: usize) -> Shares {
        let others = self.each * (self.size - 1);
        assert!(
            (others..=self.columns).contains(&columns),
            "the last columns are the last member's"
        );
        Shares { columns, ..self }
    }

    /// All columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Columns of each member but the last, which may have more.
    pub fn each(&self) -> usize {
        self.each
    }

    /// A member's.
    ///
    /// # Panics
    /// When there is no such member.
    pub fn of(&self, rank: usize) -> Range<usize> {
        assert!(rank < self.size, "a share is of one of the members");
        let end = match rank + 1 == self.size {
            true => self.columns,
            false => self.each * (rank + 1),
        };
        self.each * rank..end
    }

    /// How many columns each member has.
    pub fn lengths(&self) -> Vec<usize> {
        (0..self.size).map(|rank| self.of(rank).len()).collect()
    }
}

impl Group {
    /// Replaces the numbers of this member's share by their sums over the members, floats in the order of the ranks; integers
    /// wrap. `values` are as many for each column, one column after the other; those of the others' shares stay what they were.
    /// What [`Group::all_gather`] makes of the shares is what [`Group::sum`] makes of all.
    ///
    /// ```
    /// use warpfuse::device::group::{Shares, run_threads};
    /// let sums = run_threads(2, |group| {
    ///     let mut own = [1, 2, 3];
    ///     group.sum_share(&mut own, &Shares::even(3, 2)).map(|()| own)
    /// });
    /// assert_eq!(sums, [Ok([2_i64, 2, 3]), Ok([1, 4, 6])]);
    /// ```
    ///
    /// # Errors
    /// As [`Group::sum`].
    ///
    /// # Panics
    /// When the shares are of other members, or there are not as many values for each column.
    pub fn sum_share<T: GroupNumber>(
        &self,
        values: &mut [T],
        shares: &Shares,
    ) -> Result<(), GroupError> {
        assert_eq!(shares.size, self.size(), "shares are of all members");
        let columns = shares.columns.max(1);
        assert!(
            values.len().is_multiple_of(columns),
            "each column has as many values"
        );
        let of_column = values.len() / columns;
        let detail = (shares.each as u64) << 8 | T::KIND as u64;
        let call = (values.len(), detail);
        self.collective::<T, ()>(Operation::SumShares, call, |engine, (_, until)| {
            if engine.size() == 1 || values.is_empty() {
                return Ok(());
            }
            let own = shares.of(engine.rank());
            let parts = parts_for(engine, (values, of_column), shares, until)?;
            let own = own.start * of_column..own.end * of_column;
            combined(&parts, &mut values[own], T::plus);
            Ok(())
        })
    }

    /// Replaces the numbers of the others' shares by what those have of them: `values` as [`Group::sum_share`] takes them.
    ///
    /// ```
    /// use warpfuse::device::group::{Shares, run_threads};
    /// let found = run_threads(2, |group| {
    ///     let mut own = [group.rank() as f32; 3];
    ///     group.gather_share(&mut own, &Shares::even(3, 2)).map(|()| own)
    /// });
    /// assert!(found.iter().all(|all| *all == Ok([0.0, 1.0, 1.0])));
    /// ```
    ///
    /// # Errors
    /// As [`Group::sum`].
    ///
    /// # Panics
    /// As [`Group::sum_share`].
    pub fn gather_share<T: GroupNumber>(
        &self,
        values: &mut [T],
        shares: &Shares,
    ) -> Result<(), GroupError> {
        assert_eq!(shares.size, self.size(), "shares are of all members");
        let of_column = values.len() / shares.columns.max(1);
        let detail = (shares.each as u64) << 8 | T::KIND as u64;
        let call = (values.len(), detail);
        self.collective::<T, ()>(Operation::GatherShares, call, |engine, (_, until)| {
            let own = shares.of(engine.rank());
            let own = values[own.start * of_column..own.end * of_column].to_vec();
            let lengths = shares.lengths().into_iter().map(|len| len * of_column);
            let all = gathered(engine, (&own, &lengths.collect::<Vec<_>>()), until)?;
            values.copy_from_slice(&all);
            Ok(())
        })
    }
}

/// What all members have of this one's share, one after the other.
fn parts_for<T: GroupNumber>(
    engine: &dyn Communicator,
    (values, of_column): (&[T], usize),
    shares: &Shares,
    until: Instant,
) -> Result<Vec<T>, GroupError> {
    let own = shares.of(engine.rank()).len() * of_column;
    let mut parts = vec![T::zeroed(); own * engine.size()];
    let bytes = |len: usize| len * size_of::<T>();
    let sent = shares
        .lengths()
        .into_iter()
        .map(|len| bytes(len * of_column));
    let received = vec![bytes(own); engine.size()];
    engine.exchange(
        (bytemuck::cast_slice(values), &sent.collect::<Vec<_>>()),
        (bytemuck::cast_slice_mut(&mut parts), &received),
        until,
    )?;
    Ok(parts)
}

#[cfg(test)]
mod tests;
