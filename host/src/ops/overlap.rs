//! In which slices of columns members of a group compute w, so that one is added up while the next is computed.

use std::ops::Range;

use super::forms::Making;
use super::forms::rows::arrays;
use super::forms::site::machines;
use super::forms::slices::Slices;
use super::options::Overlap;
use super::{Matrix, Number, OpError, Preparation};
use crate::parallel;
use crate::plan::fused::{Product, Stored};
use crate::plan::scaling::{Columns, Machines, Slicing};

impl<T: Number> Matrix<T> {
    /// The slices of columns in which members of a group add up what each has of w, in the order in which they compute them: one
    /// where the sum does not overlap with the product. See [`Overlap`].
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::Matrix;
    /// let x = Matrix::new(&Device::cpu(), Features::Dense(ndarray::array![[1.0, 2.0]]))?;
    /// assert_eq!(x.column_slices(), [0..2]);
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    pub fn column_slices(&self) -> Vec<Range<usize>> {
        let own = self.members.as_ref().map_or(self, |members| &members.own);
        own.site.slices()
    }

    /// Agrees with the other members on slices, before a form is made that may have them: once.
    pub(super) fn agree_on_slices(&mut self, preparation: Preparation) -> Result<(), OpError> {
        let is_of_use = preparation.may_be_by_columns() && !self.is_reproducible();
        let (cols, overlap) = (self.cols() as u64, self.options.overlap);
        let Some(members) = self.members.as_mut().filter(|_| is_of_use) else {
            return Ok(());
        };
        if self.shape.nnz.is_none() || std::mem::replace(&mut members.has_agreed, true) {
            return Ok(());
        }
        let (slices, saves_us) = match overlap {
            Overlap::Never => return Ok(()),
            Overlap::Halves => (Slicing::even(cols, 2), 0.0),
            Overlap::Thirds => (Slicing::even(cols, 3), 0.0),
            Overlap::Planned => match machines(members.group()) {
                Some(machines) => self.planned_slices(&machines, preparation)?,
                None => return Ok(()),
            },
        };
        if slices.len() > 1 {
            tracing::info!(
                ?slices,
                "a slice of columns is added up while the next is computed"
            );
            let as_columns = |slice: Range<u64>| slice.start as usize..slice.end as usize;
            let slices = slices.into_iter().map(as_columns).collect();
            if let Some(members) = &mut self.members {
                let slices = Slices::new(members.group(), slices);
                members.own.site.slices = Some(slices.saving(saves_us));
            }
        }
        Ok(())
    }

    /// What the [model](crate::plan::scaling) expects to take least, one slice or two, and the microseconds that this saves.
    fn planned_slices(
        &self,
        machines: &Machines,
        preparation: Preparation,
    ) -> Result<(Vec<Range<u64>>, f64), OpError> {
        let members = self.members.as_ref().expect("who has slices has others");
        let columns = Columns {
            cols: self.cols() as u64,
            element: T::SIZE as u64,
            summed: T::SIZE as u64,
            memory_gb_s: self
                .device()
                .limits()
                .map_or(1.0, |limits| limits.rates.stream_gbs),
        };
        let whole = (Slicing::even(columns.cols, 1), 0.0);
        if !machines.may_overlap(columns.cols * columns.summed) {
            return Ok(whole);
        }
        let mut slowest = [members.own.ns_by_columns(preparation)?];
        members.group().max(&mut slowest)?;
        if slowest == [0] {
            return Ok(whole);
        }
        let mut entries = members.own.entries_of_stretches()?;
        members.group().sum(&mut entries)?;
        let overlap = machines.overlap(&Slicing {
            columns_us: slowest[0] as f64 / 1e3,
            columns: &columns,
            entries: &entries,
        });
        Ok(overlap.map_or(whole, |overlap| {
            let saves_us = overlap.saves_us();
            (overlap.slices.into(), saves_us)
        }))
    }

    /// What `Xᵀ·p` is predicted to take over the form that a preparation makes; 0 where that is none by columns.
    fn ns_by_columns(&self, preparation: Preparation) -> Result<u64, OpError> {
        if self.rows() == 0 {
            return Ok(0);
        }
        let making = self.making(preparation, self.saved_by_head(preparation)?)?;
        let stored = match making {
            Some(Making::Panels) => Stored::RowsAndPanels,
            Some(Making::Transpose) => Stored::RowsAndTranspose,
            _ => return Ok(0),
        };
        let shape = self.shape.with_stored(stored);
        let plan = self.planning(|planner| Ok(planner.plan(&shape, Product::Transposed)?))?;
        Ok(plan.and_then(|plan| plan.predicted_ns()).unwrap_or(0))
    }

    /// Entries of this member in each stretch of columns at whose ends they may be cut.
    fn entries_of_stretches(&self) -> Result<Vec<u64>, OpError> {
        let stretch = Slicing::stretch(self.cols() as u64) as usize;
        let features = self.forms.rows.features()?;
        let indices = arrays(&features).indices;
        let find = |entry: usize| Some(indices[entry] as usize / stretch);
        Ok(parallel::counts(
            indices.len(),
            self.cols().div_ceil(stretch),
            find,
        ))
    }
}
