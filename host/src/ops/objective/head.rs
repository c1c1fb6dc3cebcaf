//! The head of a sparse matrix: its most frequent columns, told apart for objectives.

use gpu_kernels::Family;
use gpu_kernels::fused::{UnpackArgs, UnpackVariant};
use gpu_kernels::objective::{Columns, LossClass};

use super::super::blocks::{Part, Unpacking, no_arrays};
use super::super::catalog::registers_on;
use super::super::forms::Rows;
use super::super::forms::rows::{SparseRows, arrays};
use super::super::matrix::Matrix;
use super::super::{Number, OpError};
use super::launches::Head;
use crate::device::Buffer;
use crate::layout::head::{by_frequency, places_of};
use crate::plan::fused::Plan;
use crate::plan::objective::{self as planning, HeadedKernel};

/// How large the head is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeadSize {
    /// As large as the planner expects to pay; none where columns are about equally frequent.
    Planned,
    /// This many columns, whether or not that pays.
    Places(u32),
}

impl<T: Number> Matrix<T> {
    /// Tells the most frequent columns of a sparse matrix on a GPU apart, where that makes objectives faster: in data
    /// with power laws nearly every row adds to the first elements of the gradient, and the additions queue up. Costs
    /// another 4 bytes per entry on the device. Returns how many columns those are: 0 on the CPU, for a dense matrix,
    /// and where it does not pay.
    ///
    /// Results differ from those before by rounding. Reproducible sums and plain products do not use the head, and what
    /// streams has none.
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
        if let Some(members) = &mut self.members {
            return members.own.tell_head(size);
        }
        let Rows::Sparse(rows) = &self.forms.rows else {
            return Ok(0);
        };
        let Some(limits) = self.device().limits() else {
            return Ok(0);
        };
        let is_planned = size == HeadSize::Planned;
        if rows.stream() || is_planned && !planning::may_have_head(self.problem()) {
            return Ok(0);
        }
        let features = rows.features()?;
        let indices = arrays(&features).indices;
        let least = match size {
            HeadSize::Places(_) => 1,
            HeadSize::Planned => planning::least_frequent(limits),
        };
        let frequent = by_frequency(indices, self.cols(), least);
        let places = match size {
            HeadSize::Places(places) => (places as usize).min(frequent.len()),
            HeadSize::Planned => {
                let counts: Vec<u64> = frequent.iter().map(|one| one.entries).collect();
                planning::head_places(limits, self.problem(), &counts)
            }
        };
        if places == 0 {
            return Ok(0);
        }
        let order: Vec<u32> = frequent[..places].iter().map(|one| one.column).collect();
        let device = self.device();
        let head = Head {
            indices: self.marked(rows, &places_of(&order, self.cols()))?,
            order: device.upload(&order)?,
        };
        self.plans.objectives.begin_with(Some(head));
        Ok(places)
    }

    /// The indices of each part of X with the columns that have places marked: made where X lies, so that they cross no link.
    fn marked(&self, rows: &SparseRows<T>, places: &[u32]) -> Result<Vec<Buffer<u32>>, OpError> {
        let device = self.device();
        let variant = UnpackVariant::Marked;
        let (kernel, places) = (
            Unpacking::<T>::new(device, &[variant])?,
            device.upload(places)?,
        );
        let mut parts = Vec::new();
        rows.each(Part::All, |_, block| {
            let mut marked = device.zeros(block.entries())?;
            let args = UnpackArgs {
                packed: block.indices,
                places: places.input(),
                indices: marked.output(),
                ..no_arrays::<T>(block.entries())
            };
            kernel.launch(variant, args)?;
            parts.push(marked);
            Ok(())
        })?;
        Ok(parts)
    }

    /// `plan` with the kernel for a head, where there is one that fits.
    pub(super) fn plan_with_head(&self, plan: &Plan, class: LossClass) -> Option<Plan> {
        let head = self.plans.objectives.head.as_ref()?;
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
