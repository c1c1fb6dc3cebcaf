//! The objective of linear predictors, on the device from θ to the gradient.

use super::design::Columns;
use super::solver::{Along, Objective, Value};
use crate::device::{Buffer, Device};
use crate::ops::design::{DesignColumns, DesignVectors, Ridge};
use crate::ops::objective::Constant;
use crate::ops::{Matrix, Number, OpError, Spread};

/// What a product of a Hessian is of.
#[derive(Clone, Copy)]
pub(super) struct Directed<'a, T: Number> {
    /// p, as θ is.
    pub(super) direction: &'a Buffer<T>,
    /// What X is multiplied by, where that is not what has entered.
    pub(super) as_is: Option<&'a Buffer<T>>,
    /// What was kept of the rows at the accepted point.
    pub(super) kept: &'a Buffer<T>,
    /// The state of the solve that the product is for.
    pub(super) solve: Option<&'a Buffer<f64>>,
}

/// How rows are judged by their linear predictors: what one pass over X does.
pub(super) trait Rows<T: Number> {
    /// Linear predictors of a row.
    fn predictors(&self) -> usize;

    /// Σ v·loss, Σ g and Xᵀg for the predictors of `vectors`; `kept` is what products need of the rows.
    fn evaluate(
        &mut self,
        x: &Matrix<T>,
        vectors: &mut DesignVectors<T>,
        kept: &mut Buffer<T>,
    ) -> Result<(), OpError>;

    /// The point of the last evaluation is the one whose Hessian counts.
    fn accept(&mut self) {}

    /// The product of the Hessian of Σ v·loss with a direction that has entered `vectors`, unless they take it as it is.
    fn product(
        &mut self,
        x: &Matrix<T>,
        vectors: &mut DesignVectors<T>,
        of: Directed<'_, T>,
    ) -> Result<(), OpError>;

    /// The product of the Hessian of all of f, ridge included, with a direction that X takes as it is, where one product of X gives it;
    /// whether it does.
    fn whole_product(
        &mut self,
        _: &Matrix<T>,
        _: Directed<'_, T>,
        _: (Ridge, &mut Buffer<T>),
    ) -> Result<bool, OpError> {
        Ok(false)
    }

    /// Whether a product for a solve that has ended costs less than to wait for the news of every one.
    fn skips(&self, x: &Matrix<T>, constant: Constant) -> bool;
}

/// `f(θ) = Σᵢ vᵢ·loss(x̃ᵢ·θ, bᵢ) + ½·λ‖W̃‖² + ½·λ_b·‖b̃‖²`; one pass over X per evaluation, one per Hessian product,
/// however many predictors a row has.
pub(super) struct RowsObjective<'a, T: Number, R> {
    matrix: &'a Matrix<T>,
    vectors: DesignVectors<T>,
    ridge: Ridge,
    rows: R,
    /// What is kept of the rows at the accepted point and at the last one.
    accepted: Buffer<T>,
    trial: Buffer<T>,
}

impl<'a, T: Number, R: Rows<T>> RowsObjective<'a, T, R> {
    pub(super) fn new(
        matrix: &'a Matrix<T>,
        columns: &Columns,
        ridge: Ridge,
        rows: R,
    ) -> Result<Self, OpError> {
        let (device, classes) = (matrix.device(), rows.predictors());
        let design = DesignColumns {
            cols: matrix.cols(),
            means: columns.means.as_ref(),
            scales: columns.scales.as_deref(),
            intercept: columns.intercept,
            classes,
        };
        let elements = matrix.rows() * classes;
        Ok(RowsObjective {
            matrix,
            vectors: DesignVectors::new(device, &design)?,
            ridge,
            rows,
            accepted: device.zeros(elements)?,
            trial: device.zeros(elements)?,
        })
    }

    /// Has a direction enter, unless X is multiplied by itself: then it is returned.
    fn enter<'d>(&mut self, direction: &'d Buffer<T>) -> Result<Option<&'d Buffer<T>>, OpError> {
        if self.vectors.takes_as_is() {
            return Ok(Some(direction));
        }
        self.vectors.enter(direction)?;
        Ok(None)
    }

    fn constant(&self) -> Constant {
        Constant::of(self.vectors.has_intercept)
    }

    /// Loss and gradient, of which nothing has been read yet.
    fn submit(&mut self, theta: &Buffer<T>, gradient: &mut Buffer<T>) -> Result<(), OpError> {
        self.vectors.enter(theta)?;
        self.rows
            .evaluate(self.matrix, &mut self.vectors, &mut self.trial)?;
        self.vectors.leave(theta, self.ridge, gradient)
    }
}

impl<T: Number, R: Rows<T>> Objective<T> for RowsObjective<'_, T, R> {
    fn device(&self) -> &Device {
        self.matrix.device()
    }

    fn len(&self) -> usize {
        (self.matrix.cols() + usize::from(self.vectors.has_intercept)) * self.rows.predictors()
    }

    fn evaluate(&mut self, theta: &Buffer<T>, gradient: &mut Buffer<T>) -> Result<Value, OpError> {
        self.submit(theta, gradient)?;
        Ok(Value::of(self.vectors.figures()?))
    }

    fn evaluate_along(
        &mut self,
        theta: &Buffer<T>,
        gradient: &mut Buffer<T>,
        along: Along<'_, T>,
    ) -> Result<(Value, [f64; 2]), OpError> {
        self.submit(theta, gradient)?;
        let gradients = [along.gradient, &*gradient];
        let (figures, slopes) = self.vectors.slopes(gradients, along.direction)?;
        Ok((Value::of(figures), slopes))
    }

    fn accept(&mut self) {
        std::mem::swap(&mut self.accepted, &mut self.trial);
        self.rows.accept();
    }

    fn hessian_vector(
        &mut self,
        direction: &Buffer<T>,
        product: &mut Buffer<T>,
        solve: Option<&Buffer<f64>>,
    ) -> Result<(), OpError> {
        let as_is = self.enter(direction)?;
        let of = Directed {
            direction,
            as_is,
            kept: &self.accepted,
            solve,
        };
        let whole = (self.ridge, &mut *product);
        if as_is.is_some() && self.rows.whole_product(self.matrix, of, whole)? {
            return Ok(());
        }
        self.rows.product(self.matrix, &mut self.vectors, of)?;
        self.vectors.leave_product(direction, self.ridge, product)
    }

    fn spread(&self) -> Result<Option<Spread>, OpError> {
        match self.rows.predictors() {
            1 => self.matrix.spread(self.len()),
            // Elements of a column are several.
            _ => Ok(None),
        }
    }

    fn hessian_share(
        &mut self,
        spread: &Spread,
        direction: &Buffer<T>,
        product: &mut Buffer<T>,
        solve: Option<&Buffer<f64>>,
    ) -> Result<(), OpError> {
        let as_is = self.enter(direction)?;
        let of = Directed {
            direction,
            as_is,
            kept: &self.accepted,
            solve,
        };
        let (matrix, rows, vectors) = (self.matrix, &mut self.rows, &mut self.vectors);
        let of_columns = spread.shares().of_first(matrix.cols());
        matrix.in_shares(of_columns, || rows.product(matrix, vectors, of))?;
        vectors.leave_share(direction, self.ridge, (product, spread.own()))
    }

    fn skips(&self) -> bool {
        self.rows.skips(self.matrix, self.constant())
    }
}
