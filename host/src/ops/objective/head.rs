//! The head of a sparse matrix: its most frequent columns, told apart for objectives.

use rayon::prelude::*;

use gpu_kernels::Family;
use gpu_kernels::objective::head::HEAD;
use gpu_kernels::objective::{Columns, LossClass};

use super::super::catalog::registers_on;
use super::super::layout::{Layout, csr};
use super::super::matrix::Matrix;
use super::super::{Number, OpError};
use crate::device::Buffer;
use crate::plan::fused::Plan;
use crate::plan::objective::{self as planning, HeadedKernel};

/// Entries that are looked at for the columns' frequencies, in runs.
const SAMPLE: usize = 1 << 24;
const RUN: usize = 1_024;
/// Entries that one thread marks.
const CHUNK: usize = 1 << 16;
/// No place.
const NONE: u32 = u32::MAX;

/// How large the head is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeadSize {
    /// As large as the planner expects to pay; none where columns are about equally frequent.
    Planned,
    /// So many columns, whether or not that pays.
    Places(u32),
}

/// The places, and X's indices with those columns marked.
pub(in crate::ops) struct Head {
    /// The column of each place.
    pub(super) order: Buffer<u32>,
    /// One buffer for each part of X.
    pub(super) indices: Vec<Buffer<u32>>,
}

impl<T: Number> Matrix<T> {
    /// Tells the most frequent columns of a sparse matrix on a GPU apart, where that makes objectives quicker: in data
    /// with power laws nearly every row adds to the first elements of the gradient, and the additions queue up. Costs
    /// another 4 bytes per entry on the device. Returns how many columns those are: 0 on the CPU, for a dense matrix,
    /// and where it does not pay.
    ///
    /// Results differ from those before by rounding. Reproducible sums and plain products do not use the head.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::Matrix;
    /// use warpfuse::ops::objective::HeadSize;
    ///
    /// let x = Features::Dense(ndarray::array![[1.0, 2.0], [0.0, 3.0]]);
    /// assert_eq!(Matrix::new(&Device::cpu(), x)?.tell_head(HeadSize::Planned)?, 0);
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little memory.
    pub fn tell_head(&mut self, size: HeadSize) -> Result<usize, OpError> {
        let Layout::Sparse(rows) = &self.layout else {
            return Ok(0);
        };
        let Some(limits) = self.device().limits() else {
            return Ok(0);
        };
        let features = rows.features()?;
        let indices = csr(&features).indices();
        let frequent = by_frequency(indices, self.cols());
        let places = match size {
            HeadSize::Places(places) => (places as usize).min(frequent.len()),
            HeadSize::Planned => {
                let counts: Vec<u64> = frequent.iter().map(|(count, _)| *count).collect();
                planning::head_places(limits, self.problem(), &counts)
            }
        };
        if places == 0 {
            return Ok(0);
        }
        let order: Vec<u32> = frequent[..places]
            .iter()
            .map(|(_, column)| *column)
            .collect();
        let marked = marked(indices, &order, self.cols());
        let device = self.device();
        let (mut parts, mut rest) = (Vec::new(), &marked[..]);
        for part in rows.parts()? {
            let (own, others) = rest.split_at(part.indices.len());
            parts.push(device.upload(own)?);
            rest = others;
        }
        let head = Head {
            indices: parts,
            order: device.upload(&order)?,
        };
        self.objectives.begin_with(Some(head));
        Ok(places)
    }

    /// `plan` with the kernel for a head, where there is one that fits.
    pub(super) fn plan_with_head(&self, plan: &Plan, class: LossClass) -> Option<Plan> {
        let head = self.objectives.head.as_ref()?;
        let limits = self.device().limits()?;
        let kernels = T::SparseObjective::entries().iter();
        let kernels = kernels
            .filter(|entry| entry.variant.class == class)
            .filter(|entry| entry.variant.columns == Columns::Headed)
            .map(|entry| HeadedKernel {
                name: entry.name,
                vs: entry.variant.sparse.vs,
                registers: registers_on(self.device(), entry.name),
            });
        let places = head.order.len() as u32;
        let size = (self.rows() as u64, self.problem().nnz.unwrap_or_default());
        planning::with_head(limits, plan, places, size, &kernels.collect::<Vec<_>>())
    }
}

/// Columns that appear in a sample, the most frequent first, with about how many entries they have.
fn by_frequency(indices: &[u32], cols: usize) -> Vec<(u64, u32)> {
    let step = indices.len().div_ceil(SAMPLE).max(1);
    let mut counts = vec![0_u32; cols];
    let runs = indices.chunks(RUN).step_by(step);
    runs.flatten()
        .for_each(|column| counts[*column as usize] += 1);
    let seen = counts.iter().zip(0..).filter(|(count, _)| **count > 0);
    let mut seen: Vec<(u64, u32)> = seen
        .map(|(count, column)| (u64::from(*count) * step as u64, column))
        .collect();
    // Equal ones in the order of the columns, so that the head is always the same.
    seen.par_sort_unstable_by_key(|(count, column)| (std::cmp::Reverse(*count), *column));
    seen
}

/// Indices in which the columns of `order` are places of the head.
fn marked(indices: &[u32], order: &[u32], cols: usize) -> Vec<u32> {
    let mut places = vec![NONE; cols];
    for (place, column) in (0..).zip(order) {
        places[*column as usize] = place;
    }
    let mark = |index: &u32| match places[*index as usize] {
        NONE => *index,
        place => place | HEAD,
    };
    indices.par_iter().with_min_len(CHUNK).map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_columns_are_marked() {
        let indices = [3, 1, 2, 1, 3, 1];
        let frequent = by_frequency(&indices, 5);
        assert_eq!(frequent, [(3, 1), (2, 3), (1, 2)]);
        let marked = marked(&indices, &[1, 3], 5);
        let (first, second) = (HEAD, HEAD | 1);
        assert_eq!(marked, [second, first, 2, first, second, first]);
    }
}
