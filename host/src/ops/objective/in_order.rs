//! Objectives of dense rows that stream, with sums in an order: X·y, the slopes of the losses and Xᵀg of a block while it is
//! on the device, so that X crosses the link once.
//!
//! Sums of losses have an order of their own over all rows: they are added when all X·y are known.

use super::super::blocks::Part;
use super::super::forms::carried::CarriedKernels;
use super::super::forms::{Call, Rows};
use super::super::launch::{prepare, slice};
use super::super::matrix::Matrix;
use super::super::terms::Terms;
use super::super::{Number, OpError};
use super::block_slopes::BlockSlopes;
use super::launches::InOrder;
use super::row_args::{GRADIENT, row_args};
use super::{Evaluation, ObjectiveOut};
use crate::device::Buffer;
use crate::plan::fused::Product;

impl<T: Number> Matrix<T> {
    /// The launches for dense rows that stream; none for others.
    pub(super) fn in_order(&self) -> Result<Option<&InOrder<T>>, OpError> {
        let slot = &self.plans.objectives.in_order;
        let made = slot.get_or_init(|| self.make_in_order());
        Ok(made.as_ref().map_err(OpError::clone)?.as_ref())
    }

    fn make_in_order(&self) -> Result<Option<InOrder<T>>, OpError> {
        let Rows::Dense(rows) = &self.forms.rows else {
            return Ok(None);
        };
        if rows.streamed().is_none() {
            return Ok(None);
        }
        let Some(plan) = self.plan(Product::Forward)? else {
            return Ok(None);
        };
        let gradient = CarriedKernels::prepare(&self.site, rows, Product::Transposed)?;
        let Some(gradient) = gradient else {
            return Ok(None);
        };
        let device = self.device();
        Ok(Some(InOrder {
            forward: prepare::<T::Dense>(device, &plan)?,
            gradient,
            slopes: BlockSlopes::new(device, self.rows())?,
            rows: rows.clone(),
        }))
    }

    /// An objective with its gradient, over vectors of m elements for X·y and for slopes that nobody wants.
    pub(super) fn objective_carried(
        &self,
        launches: &InOrder<T>,
        (evaluation, y): (&Evaluation<'_, T>, &Buffer<T>),
        out: &mut ObjectiveOut<'_, T>,
        [products, own]: [&mut Buffer<T>; 2],
    ) -> Result<(), OpError> {
        let mut carrying = launches.gradient.begin();
        launches.rows.each(Part::All, |block| {
            let range = block.range();
            let forward = Call::plain(Product::Forward, y, &mut *products);
            let forward = block.args(self.cols(), forward);
            launches.forward.launch(forward)?;
            let slopes = out.residual.as_deref_mut().unwrap_or(&mut *own);
            let vectors = (&*products, &mut *slopes);
            let of = (evaluation, y);
            launches.slopes.launch(of, vectors, &range, out.solve)?;
            let gradient = out.gradient.as_deref_mut().expect(GRADIENT);
            let transposed = Call::plain(Product::Transposed, slopes, gradient);
            carrying.add(&self.site, &block, transposed)
        })?;
        let all = 0..self.rows();
        let (rows, _) = row_args(evaluation, y, out, all.clone());
        self.row_kernel()?.launch(slice(products, &all), rows)?;
        let gradient = out.gradient.as_deref_mut().expect(GRADIENT);
        carrying.finish(&self.site, &Terms::default(), gradient)
    }
}
