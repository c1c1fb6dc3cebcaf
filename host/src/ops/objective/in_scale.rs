//! Objectives of sparse rows that stream, with fixed-point sums whose scale is known before a row is (see `bounds`): X·y, the slopes
//! of the losses and Xᵀg of a block while it is on the device, so that X crosses the link once.
//!
//! Sums of losses have an order over all rows: they are added when all X·y are known.

use super::super::blocks::Part;
use super::super::forms::fixed::{FixedKernels, Vectors};
use super::super::forms::{Call, Rows, Within};
use super::super::launch::{prepare, slice};
use super::super::matrix::Matrix;
use super::super::terms::Terms;
use super::super::{Number, OpError};
use super::block_slopes::BlockSlopes;
use super::launches::InScale;
use super::row_args::{GRADIENT, row_args};
use super::{Evaluation, ObjectiveOut};
use crate::device::Buffer;
use crate::plan::fused::Product;

impl<T: Number> Matrix<T> {
    /// The launches for sparse rows that stream; none for others.
    pub(super) fn in_scale(&self) -> Result<Option<&InScale<T>>, OpError> {
        let slot = &self.plans.objectives.in_scale;
        let made = slot.get_or_init(|| self.make_in_scale());
        Ok(made.as_ref().map_err(OpError::clone)?.as_ref())
    }

    fn make_in_scale(&self) -> Result<Option<InScale<T>>, OpError> {
        let Rows::Sparse(rows) = &self.forms.rows else {
            return Ok(None);
        };
        // Members of a group have rows of their own each, and sums of all.
        if !rows.stream() || self.site.together.is_some() {
            return Ok(None);
        }
        let plans = (
            self.plan(Product::Forward)?,
            self.plan(Product::Transposed)?,
        );
        let (Some(forward), Some(transposed)) = plans else {
            return Ok(None);
        };
        let transposed = self.fixed_with_head(transposed);
        let device = self.device();
        Ok(Some(InScale {
            forward: prepare::<T::Sparse>(device, &forward)?,
            gradient: FixedKernels::prepare(&self.site, &self.forms.fixed(rows), &transposed)?,
            slopes: BlockSlopes::new(device, self.rows())?,
            rows: rows.clone(),
        }))
    }

    /// Such an objective with its gradient, over vectors of m elements for X·y and for slopes that nobody wants.
    pub(super) fn objective_in_scale(
        &self,
        (launches, within): (&InScale<T>, Within<'_, T>),
        (evaluation, y): (&Evaluation<'_, T>, &Buffer<T>),
        out: &mut ObjectiveOut<'_, T>,
        [products, own]: [&mut Buffer<T>; 2],
    ) -> Result<(), OpError> {
        let gradient = out.gradient.as_deref_mut().expect(GRADIENT);
        let vectors = Vectors {
            product: Product::Transposed,
            input: y,
            terms: Terms::default(),
            within: Some(within),
        };
        let mut pass = launches.gradient.begin(&self.site, vectors, gradient)?;
        launches.rows.each(Part::All, |number, block| {
            let range = block.range();
            let forward = Call::plain(Product::Forward, y, &mut *products);
            launches.forward.launch(block.args(self.cols(), forward))?;
            let slopes = out.residual.as_deref_mut().unwrap_or(&mut *own);
            let vectors = (&*products, &mut *slopes);
            let of = (evaluation, y);
            launches.slopes.launch(of, vectors, &range, out.solve)?;
            let gradient = out.gradient.as_deref_mut().expect(GRADIENT);
            pass.add(&self.site, (number, &block), (slopes, gradient))
        })?;
        let all = 0..self.rows();
        let (rows, _) = row_args(evaluation, y, out, all.clone());
        self.row_kernel()?.launch(slice(products, &all), rows)?;
        let gradient = out.gradient.as_deref_mut().expect(GRADIENT);
        pass.finish(&self.site, gradient)
    }
}
