//! Kernel sums that the members of a group share by the points that they are found at.
//!
//! Points are few where pairs are many: every member has all of them. Each result is one member's, who sums over all other
//! points in their order, and is gathered: whatever the number of members, the additions are the same.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, CowArray, Ix2};

use super::super::{Number, OpError};
use super::{At, KernelSum};
use crate::device::group::Group;
use crate::device::{Buffer, Device};

/// What one member computes.
#[derive(Debug)]
pub(super) struct Shared<T: Number> {
    group: Group,
    targets: Part<T>,
    /// None: those of the targets.
    sources: Option<Part<T>>,
}

/// Results at one set of points.
#[derive(Debug)]
struct Part<T: Number> {
    /// Points of each member.
    counts: Vec<usize>,
    /// This member's.
    own: Range<usize>,
    /// At these over all others, by this member alone.
    sums: Box<KernelSum<T>>,
}

impl<T: Number> Shared<T> {
    /// Of sums between all points, which lie on this member's device.
    pub(super) fn new(group: &Group, all: &KernelSum<T>) -> Result<Shared<T>, OpError> {
        let sources = all.sources.as_ref();
        Ok(Shared {
            group: group.clone(),
            targets: Part::new(group, all, At::Targets)?,
            sources: sources
                .map(|_| Part::new(group, all, At::Sources))
                .transpose()?,
        })
    }

    /// The sums of this member at such points.
    pub(super) fn at(&self, at: At) -> &KernelSum<T> {
        &self.part(at).sums
    }

    fn part(&self, at: At) -> &Part<T> {
        match (at, &self.sources) {
            (At::Sources, Some(sources)) => sources,
            _ => &self.targets,
        }
    }

    /// As [`KernelSum::sum_at`], whose checks have been made.
    pub(super) fn sum(
        &self,
        at: At,
        weights: &Buffer<T>,
        addend: Option<(T, &Buffer<T>)>,
        out: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let part = self.part(at);
        let vectors = out.len().checked_div(part.all()).unwrap_or(0);
        let z = match addend {
            Some((beta, z)) => Some((beta, part.of_vectors(z, vectors)?)),
            None => None,
        };
        let mut own = out.device().zeros(vectors * part.own.len())?;
        let z = z.as_ref().map(|(beta, z)| (*beta, z));
        part.sums.sum_at(At::Targets, weights, z, &mut own)?;
        if vectors == 1 {
            return part.gather(&self.group, (&own, 1), out);
        }
        let mut one = out.device().zeros(part.all())?;
        for vector in 0..vectors {
            let from = vector * part.own.len();
            let of_vector = own.copy_of(&(from..from + part.own.len()))?;
            part.gather(&self.group, (&of_vector, 1), &mut one)?;
            out.put(vector * part.all(), &one)?;
        }
        Ok(())
    }

    /// As [`KernelSum::gradient_at`], whose checks have been made.
    pub(super) fn gradient(
        &self,
        at: At,
        w: &Buffer<T>,
        out: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let part = self.part(at);
        let dims = part.sums.dims;
        let mut own = out.device().zeros(dims * part.own.len())?;
        part.sums.gradient_at(At::Targets, w, &mut own)?;
        part.gather(&self.group, (&own, dims), out)
    }
}

impl<T: Number> Part<T> {
    fn new(group: &Group, all: &KernelSum<T>, at: At) -> Result<Part<T>, OpError> {
        let (points, others) = (all.points(at), all.points(at.other()));
        let (len, size) = (points.len, group.size());
        let first = |rank: usize| (len as u64 * rank as u64 / size as u64) as usize;
        let own = first(group.rank())..first(group.rank() + 1);
        let device = all.device.alone();
        let targets = points.part(&device, &own)?;
        // k depends on differences alone: whose they are makes no difference to it.
        let sums = KernelSum::between(
            &device,
            (all.kernel, all.dims),
            targets.into(),
            Some(others.clone()),
        );
        Ok(Part {
            counts: (0..size)
                .map(|rank| first(rank + 1) - first(rank))
                .collect(),
            own,
            sums: Box::new(sums),
        })
    }

    /// Points of all members.
    fn all(&self) -> usize {
        self.counts.iter().sum()
    }

    /// The elements of this member's points of each of several vectors.
    fn of_vectors(&self, all: &Buffer<T>, vectors: usize) -> Result<Buffer<T>, OpError> {
        let mut own = all.device().zeros(vectors * self.own.len())?;
        for vector in (0..vectors).filter(|_| !self.own.is_empty()) {
            let first = vector * self.all();
            let part = all.copy_of(&(first + self.own.start..first + self.own.end))?;
            own.put(vector * self.own.len(), &part)?;
        }
        Ok(own)
    }

    /// Completes `out`, of `k` elements for each point, of which this member has found its own.
    fn gather(
        &self,
        group: &Group,
        (own, k): (&Buffer<T>, usize),
        out: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        if !own.is_empty() {
            out.put(self.own.start * k, own)?;
        }
        let lengths: Vec<usize> = self.counts.iter().map(|count| count * k).collect();
        Ok(group.gather_on_devices(out, &lengths)?)
    }
}

/// The points of all members of the device's group, one after the other in the order of the ranks; those given where there is
/// no other member.
///
/// # Errors
/// [`OpError::Shares`] where members have other columns or another type than rank 0, [`OpError::Group`] where they cannot be
/// reached.
pub(crate) fn points_of_all<'a, T: Number>(
    device: &Device,
    own: ArrayView2<'a, T>,
) -> Result<CowArray<'a, T, Ix2>, OpError> {
    let Some(group) = device.group() else {
        return Ok(own.into());
    };
    let facts = facts(own);
    let all = group.all_gather(&facts)?;
    let describe = |of: &[u64]| format!("points of {} coordinates of f{}", of[1], 8 * of[2]);
    expect_alike(&all, |of| of[1..].to_vec(), describe)?;
    let rows = all.chunks(facts.len()).map(|of| of[0] as usize).sum();
    let own = own.as_standard_layout();
    let own = own.as_slice().expect("an array in standard layout");
    let points = group.all_gather(own)?;
    let points = Array2::from_shape_vec((rows, facts[1] as usize), points);
    Ok(points.expect("rows of as many coordinates").into())
}

/// Checks that members of the device's group have as many sources.
///
/// # Errors
/// As [`points_of_all`].
pub(super) fn expect_whole<T: Number>(
    device: &Device,
    sources: ArrayView2<'_, T>,
) -> Result<(), OpError> {
    let Some(group) = device.group() else {
        return Ok(());
    };
    let all = group.all_gather(&facts(sources))?;
    let describe = |of: &[u64]| {
        format!(
            "{} sources of {} coordinates of f{}",
            of[0],
            of[1],
            8 * of[2]
        )
    };
    expect_alike(&all, <[u64]>::to_vec, describe)
}

/// How many facts members compare.
const FACTS: usize = 3;

/// Points, coordinates, and the bytes of one.
fn facts<T: Number>(points: ArrayView2<'_, T>) -> [u64; FACTS] {
    [points.nrows(), points.ncols(), T::SIZE as usize].map(|fact| fact as u64)
}

/// Checks that the [facts](facts()) of each member are those of rank 0, as far as `of` goes.
fn expect_alike(
    all: &[u64],
    of: impl Fn(&[u64]) -> Vec<u64>,
    describe: impl Fn(&[u64]) -> String,
) -> Result<(), OpError> {
    let all: Vec<&[u64]> = all.chunks(FACTS).collect();
    match all.iter().position(|facts| of(facts) != of(all[0])) {
        None => Ok(()),
        Some(rank) => Err(OpError::Shares {
            rank,
            expected: describe(all[0]),
            found: describe(all[rank]),
        }),
    }
}
