//! Objectives of learning in one pass over X: Σ loss and gradient of any loss.
//!
//! With t = X·y + c + o (intercept c, offsets o) and vᵣ = scale · weightᵣ:
//!
//! - the sums Σ vᵣ·loss(tᵣ, bᵣ), Σ gᵣ and Σ dᵣ, in f64,
//! - the gradient Xᵀg + β·z, where gᵣ = vᵣ·loss'(tᵣ, bᵣ),
//! - g and d themselves, where dᵣ = vᵣ·loss''(tᵣ, bᵣ) (see [`Point::curvature`]).
//!
//! X is read once, by kernels that are the fused pattern's with a loss instead of the product with v. It is read
//! twice where the pattern reads it twice (dense and wider than registers hold, vectors beyond the L2 cache), and
//! once, with the losses of the rows in a launch of their own, where no gradient is requested.
//! Over a further form of a sparse X ([`Matrix::prepare`]) it is read twice, too, where the planner expects that to be
//! faster than one pass over its rows: not for an objective with β·z or [`Intercept::Last`].
//!
//! The Hessian-vector product Xᵀ(d ⊙ (X·s)) is the fused pattern with d as weights: [`Matrix::fused`]. With an
//! intercept it is [`Matrix::hessian_product`], which also gives Σ d·t² = sᵀHs. Over a further form one fused product is
//! faster than the two of an objective: [`Matrix::hessian_in_one_product`] says where.

mod block_slopes;
mod bounds;
mod evaluation;
mod gpu;
mod host;
mod in_order;
mod in_scale;
pub(super) mod launches;
mod members;
mod over_form;
mod row_args;
mod row_kernel;
mod rows;
mod score;
mod softmax;
mod softmax_sparse;

pub use gpu_kernels::objective::{Distribution, Link, Loss, Point};

pub use super::forms::head::HeadSize;
pub use evaluation::{Evaluation, Intercept, ObjectiveOut, ObjectiveSums};
pub use rows::{RowsOut, losses_on_host, row_losses};
pub use score::{
    ClassCodes, ClassSums, NumberSums, Probabilities, RowWeights, score_classes, score_numbers,
    unit_deviance,
};
pub use softmax::{Softmax, SoftmaxOut};

pub use crate::plan::objective::{Constant, PRODUCTS_PER_POINT};

use super::blocks::Part;
use super::forms::Rows;
use super::matrix::Matrix;
use super::{Number, OpError};
use crate::device::Buffer;

impl<T: Number> Matrix<T> {
    /// Evaluates the objective at `y` (n elements, n + 1 with [`Intercept::Last`]), reading X once.
    ///
    /// On the CPU the same bits come out every time; on a GPU atomics add in any order, unless the matrix was made with
    /// [`Summation::Reproducible`](crate::plan::fused::Summation::Reproducible): then X is read twice, and
    /// the bits are the same every time and on every device, of objectives without an addend and without
    /// [`Intercept::Last`]. An X that streams crosses the link once all the same if it is dense, or the objective is that of
    /// logistic regression or a [product of the Hessian](Matrix::hessian_product).
    ///
    /// # Errors
    /// [`OpError::Length`] and [`OpError::OtherDevice`] when a vector does not fit, [`OpError::Plan`] when no
    /// launch does, [`OpError::Device`] when the device fails.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::Matrix;
    /// use warpfuse::ops::objective::{Evaluation, Loss, ObjectiveOut, ObjectiveSums};
    ///
    /// let device = Device::cpu();
    /// let x = Matrix::new(&device, Features::Dense(array![[1.0, 2.0], [0.0, 3.0]]))?;
    /// let (y, target) = (device.upload(&[0.0, 0.0])?, device.upload(&[1.0, 0.0])?);
    /// let mut sums = device.zeros(ObjectiveSums::LEN)?;
    /// let mut gradient = device.zeros(2)?;
    /// let evaluation = Evaluation::new(Loss::Logistic, &target);
    /// x.objective(&evaluation, &y, ObjectiveOut::new(&mut sums, &mut gradient))?;
    /// assert_eq!(gradient.to_vec()?, [-0.5, 0.5]);
    /// assert_eq!(ObjectiveSums::of(&sums.to_vec()?).loss, 2.0 * 2f64.ln());
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    pub fn objective(
        &self,
        evaluation: &Evaluation<'_, T>,
        y: &Buffer<T>,
        mut out: ObjectiveOut<'_, T>,
    ) -> Result<(), OpError> {
        self.check_objective(evaluation, y, &out)?;
        match &self.forms.rows {
            Rows::Host(_) if self.repeats(evaluation, &out) => {
                self.objective_in_order(evaluation, y, &mut out)
            }
            Rows::Host(x) => x.reading(|| host::run(x, evaluation, y, &mut out))?,
            Rows::Elsewhere(_) if !self.repeats(evaluation, &out) => {
                self.objective_of_members(evaluation, y, &mut out)
            }
            _ => match self.beside()? {
                Some(beside) => self.objective_beside(beside, (evaluation, y), &mut out),
                None => self.objective_on_gpu(Part::All, evaluation, y, &mut out),
            },
        }
    }

    /// `w = Xᵀ(d ⊙ t) + β·z` with t = X·s + c, and ½·Σ d·t² and Σ d·t as the first two of the sums: the product of
    /// the Hessian with s, for d the curvature that [`Matrix::objective`] stored.
    ///
    /// # Errors
    /// As [`Matrix::objective`].
    pub fn hessian_product(
        &self,
        curvature: &Buffer<T>,
        intercept: Intercept<'_, T>,
        s: &Buffer<T>,
        out: ObjectiveOut<'_, T>,
    ) -> Result<(), OpError> {
        let quadratic = Evaluation {
            loss: Loss::Squared,
            target: None,
            weights: Some(curvature),
            offset: None,
            intercept,
            scale: <T as gpu_kernels::Real>::ONE,
        };
        self.objective(&quadratic, s, out)
    }

    fn check_objective(
        &self,
        evaluation: &Evaluation<'_, T>,
        y: &Buffer<T>,
        out: &ObjectiveOut<'_, T>,
    ) -> Result<(), OpError> {
        let (m, n) = (self.rows(), self.cols());
        let last = usize::from(matches!(evaluation.intercept, Intercept::Last));
        self.check_vector("y", n + last, y)?;
        if let Intercept::Given(c) = evaluation.intercept {
            self.check_vector("the intercept", 1, c)?;
        }
        self.check_vector("the sums", ObjectiveSums::LEN, out.sums)?;
        let optional = [
            ("the target", m, evaluation.target),
            ("the weights", m, evaluation.weights),
            ("the offset", m, evaluation.offset),
            ("the gradient", n + last, out.gradient.as_deref()),
            ("z", n + last, out.addend.map(|(_, z)| z)),
            ("the residual", m, out.residual.as_deref()),
            ("the curvature", m, out.curvature.as_deref()),
        ];
        optional.into_iter().try_for_each(|(what, len, vector)| {
            vector.map_or(Ok(()), |vector| self.check_vector(what, len, vector))
        })
    }
}
