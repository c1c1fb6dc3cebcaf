//! One member's rows among those of all members of a group: what of the vectors is its own, and what has to be put together.

use std::ops::Range;

use bytemuck::Pod;

use super::spread::Wish;
use super::{Number, OpError};
use crate::cpu::fixed::Whole;
use crate::cpu::ordered::Place;
use crate::cpu::{Addend, Scalar};
use crate::device::Buffer;
use crate::device::group::Group;
use crate::matrix::{Features, with_offsets};

/// The rows of one member.
#[derive(Debug, Clone)]
pub(super) struct Share {
    group: Group,
    /// Which rows of all they are.
    own: Range<usize>,
    /// Rows of each member.
    counts: Vec<usize>,
    /// Rows, entries and the longest row of all members.
    whole: Whole,
    /// Of which columns sums are wanted.
    wish: Wish,
}

/// What members tell each other of their rows.
struct Facts {
    rows: u64,
    cols: u64,
    entries: u64,
    longest: u64,
    /// 1 for sparse, 0 for dense.
    sparse: u64,
    /// Bytes of an element.
    size: u64,
}

impl Facts {
    const LEN: usize = 6;

    fn of<T: Number>(x: &Features<T>) -> Facts {
        let longest = match x.csr_arrays() {
            Some(x) => with_offsets!(x.offsets, offsets => longest_row(offsets)),
            None => x.cols() as u64,
        };
        Facts {
            rows: x.rows() as u64,
            cols: x.cols() as u64,
            entries: x.nnz() as u64,
            longest,
            sparse: u64::from(x.is_sparse()),
            size: T::SIZE as u64,
        }
    }

    fn numbers(&self) -> [u64; Facts::LEN] {
        let Facts {
            rows,
            cols,
            entries,
            longest,
            sparse,
            size,
        } = *self;
        [rows, cols, entries, longest, sparse, size]
    }

    fn read(numbers: &[u64]) -> Facts {
        Facts {
            rows: numbers[0],
            cols: numbers[1],
            entries: numbers[2],
            longest: numbers[3],
            sparse: numbers[4],
            size: numbers[5],
        }
    }

    fn describe(&self) -> String {
        let kind = if self.sparse == 1 { "sparse" } else { "dense" };
        format!("{kind}, {} columns of f{}", self.cols, 8 * self.size)
    }

    fn fits(&self, other: &Facts) -> bool {
        let kind = |of: &Facts| (of.cols, of.sparse, of.size);
        kind(self) == kind(other)
    }
}

fn longest_row<O: Copy + Into<u64>>(offsets: &[O]) -> u64 {
    let lengths = offsets.windows(2).map(|row| row[1].into() - row[0].into());
    lengths.max().unwrap_or(0)
}

impl Share {
    /// That of this member; `None` where it has no others.
    ///
    /// # Errors
    /// [`OpError::Shares`] where members have other columns or another storage than rank 0.
    pub(super) fn of<T: Number>(
        group: &Group,
        features: &Features<T>,
    ) -> Result<Option<Self>, OpError> {
        if group.is_alone() {
            return Ok(None);
        }
        let all = group.all_gather(&Facts::of(features).numbers())?;
        let all: Vec<Facts> = all.chunks(Facts::LEN).map(Facts::read).collect();
        if let Some(rank) = all.iter().position(|facts| !facts.fits(&all[0])) {
            return Err(OpError::Shares {
                rank,
                expected: all[0].describe(),
                found: all[rank].describe(),
            });
        }
        let rows_of = |facts: &[Facts]| facts.iter().map(|facts| facts.rows).sum::<u64>();
        let first = rows_of(&all[..group.rank()]) as usize;
        Ok(Some(Share {
            own: first..first + features.rows(),
            counts: all.iter().map(|facts| facts.rows as usize).collect(),
            whole: Whole {
                rows: rows_of(&all),
                entries: all.iter().map(|facts| facts.entries).sum(),
                longest: all.iter().map(|facts| facts.longest).max().unwrap_or(0),
            },
            group: group.clone(),
            wish: Wish::default(),
        }))
    }

    pub(super) fn group(&self) -> &Group {
        &self.group
    }

    /// Of which columns sums are wanted.
    pub(super) fn wish(&self) -> &Wish {
        &self.wish
    }

    /// Which rows of all are this member's.
    pub(super) fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    /// Which elements of a vector are this member's that has `k` for every row of all.
    pub(super) fn elements(&self, k: usize) -> Range<usize> {
        self.own.start * k..self.own.end * k
    }

    /// Rows of each member.
    pub(super) fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// What all members have together.
    pub(super) fn whole(&self) -> &Whole {
        &self.whole
    }

    /// Where its rows are among all.
    pub(super) fn place(&self) -> Place {
        Place {
            first: self.own.start as u64,
            all: self.whole.rows,
            is_last: self.group.rank() + 1 == self.group.size(),
        }
    }

    /// The elements of its rows, of `k` for every row of all.
    pub(super) fn part<'v, V>(&self, all: &'v [V], k: usize) -> &'v [V] {
        &all[self.elements(k)]
    }

    /// [`Share::part`], to be written.
    pub(super) fn part_mut<'v, V>(&self, all: &'v mut [V], k: usize) -> &'v mut [V] {
        &mut all[self.elements(k)]
    }

    /// Completes a vector of `k` elements for every row of all, of which each member has those of its rows.
    pub(super) fn gather<V: Pod>(&self, all: &mut [V], k: usize) -> Result<(), OpError> {
        let gathered = self.group.all_gather(self.part(all, k))?;
        all.copy_from_slice(&gathered);
        Ok(())
    }

    /// Adds up what members have of a vector that belongs to the columns, or of this one's share of it where that is all that is
    /// wanted, in f64, and adds β·z once.
    pub(super) fn sum<T: Number>(
        &self,
        w: &mut [T],
        addend: Option<(T, &[T])>,
    ) -> Result<(), OpError> {
        let mut sums: Vec<f64> = w.iter().map(|w| (*w).into()).collect();
        match self.wish.of(w.len()) {
            Some(shares) => self.group.sum_share(&mut sums, &shares)?,
            None => self.group.sum(&mut sums)?,
        }
        for (j, (w, sum)) in w.iter_mut().zip(sums).enumerate() {
            let addend = addend.map_or(0.0, |(beta, z)| {
                Into::<f64>::into(beta) * Into::<f64>::into(z[j])
            });
            *w = <T as Scalar>::narrow(sum + addend);
        }
        Ok(())
    }
}

/// The elements of a member's rows, or all where nothing is shared.
pub(super) fn part<'v, V>(share: Option<&Share>, all: &'v [V], k: usize) -> &'v [V] {
    share.map_or(all, |share| share.part(all, k))
}

/// [`part`], to be written.
pub(super) fn part_mut<'v, V>(share: Option<&Share>, all: &'v mut [V], k: usize) -> &'v mut [V] {
    match share {
        Some(share) => share.part_mut(all, k),
        None => all,
    }
}

/// [`part`] of a vector on the CPU.
pub(super) fn part_of<'v, T: Number>(
    share: Option<&Share>,
    vector: &'v Buffer<T>,
    k: usize,
) -> &'v [T] {
    let all = vector.as_host_slice().expect("shares are of the CPU");
    part(share, all, k)
}

/// β·z as a pair, which is added once all members' parts have been.
pub(super) fn addend_of<'v, T>(addend: Addend<'v, T>) -> Option<(T, &'v [T])> {
    match addend {
        Addend::Vector { beta, z } => Some((beta, z)),
        Addend::None | Addend::InPlace { .. } => None,
    }
}

#[cfg(test)]
mod tests;
