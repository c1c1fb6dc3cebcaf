//! Several objectives of one linear predictor per row over one X: masks, weights, losses and penalties of their own.
//!
//! θ, its gradient and everything else of n elements belongs to one member and is computed for each in turn; X is multiplied
//! with all of them at once, which reads it once for up to eight.

use std::sync::Arc;

use crate::device::{Buffer, Device};
use crate::learning::design::Columns;
use crate::learning::solver::batched::Objectives;
use crate::learning::solver::{Point, Value};
use crate::matrix::Element;
use crate::ops::design::{DesignColumns, DesignVectors, Ridge};
use crate::ops::objective::{Evaluation, Intercept, Loss, RowsOut, row_losses};
use crate::ops::vector::{Column, Dots, put_column, take_column};
use crate::ops::{ManyTerms, Matrix, Number, OpError, RowWeights};
use crate::parallel;

/// What tells one objective from the others.
pub(super) struct MemberSpec<'a, T: Number> {
    pub(super) columns: &'a Columns<'a>,
    pub(super) loss: Loss,
    pub(super) ridge: Ridge,
    pub(super) targets: &'a [T],
    /// v, which add up to 1; 0 for rows that are held out.
    pub(super) weights: &'a [T],
}

/// One objective, `f(θ) = Σᵢ vᵢ·loss(x̃ᵢ·θ, bᵢ) + ½·λ‖w̃‖² + ½·λ_b·b̃²`.
struct Member<T: Number> {
    vectors: DesignVectors<T>,
    loss: Loss,
    ridge: Ridge,
    targets: Arc<Buffer<T>>,
    weights: Arc<Buffer<T>>,
    /// X̃ᵀd of the accepted point: what the intercept has to do with each coordinate.
    level: Buffer<T>,
    /// Σ d of the last point.
    curvature: f64,
    is_levelled: bool,
}

/// All of them. X is read twice per evaluation (X·Y, Xᵀ·G), once per Hessian product, and once for `level` per accepted
/// point where there are intercepts and the curvature changes.
pub(super) struct BatchedObjective<'a, T: Number> {
    matrix: &'a Matrix<T>,
    members: Vec<Member<T>>,
    /// Y and W, n × k.
    inputs: Buffer<T>,
    outputs: Buffer<T>,
    /// −c, k elements.
    shift: Buffer<T>,
    /// X·Y, then the slopes, m × k.
    rows: Buffer<T>,
    /// D, m × k, of the accepted points and of the last ones.
    accepted: Buffer<T>,
    trial: Buffer<T>,
    /// Of one member: predictors, slopes, curvatures.
    column: [Buffer<T>; 3],
    /// Zeros, as long as θ, where no ridge is wanted.
    still: Buffer<T>,
    dots: Dots,
}

impl<'a, T: Number> BatchedObjective<'a, T> {
    /// At least one member; all have an intercept or none has.
    pub(super) fn new(matrix: &'a Matrix<T>, specs: &[MemberSpec<'_, T>]) -> Result<Self, OpError> {
        let device = matrix.device();
        let (m, n, k) = (matrix.rows(), matrix.cols(), specs.len());
        let len = n + usize::from(specs.iter().any(|spec| spec.columns.intercept));
        let mut targets = Shared::default();
        let mut weights = Shared::default();
        let mut members = Vec::with_capacity(k);
        for spec in specs {
            let columns = DesignColumns {
                cols: n,
                means: spec.columns.means.as_ref(),
                scales: spec.columns.scales.as_deref(),
                intercept: spec.columns.intercept,
                classes: 1,
            };
            members.push(Member {
                vectors: DesignVectors::new(device, &columns)?,
                loss: spec.loss,
                ridge: spec.ridge,
                targets: targets.upload(device, spec.targets)?,
                weights: weights.upload(device, spec.weights)?,
                level: device.zeros(len)?,
                curvature: 0.0,
                is_levelled: false,
            });
        }
        let row = || device.zeros(m);
        Ok(BatchedObjective {
            matrix,
            members,
            inputs: device.zeros(n * k)?,
            outputs: device.zeros(n * k)?,
            shift: device.zeros(k)?,
            rows: device.zeros(m * k)?,
            accepted: device.zeros(m * k)?,
            trial: device.zeros(m * k)?,
            column: [row()?, row()?, row()?],
            still: device.zeros(len)?,
            dots: Dots::new(device, len)?,
        })
    }

    fn column(&self, index: usize) -> Column {
        let of = self.members.len();
        Column { index, of }
    }

    /// Column c of Y, and −c, of θ.
    fn enter(&mut self, number: usize, theta: &Buffer<T>) -> Result<(), OpError> {
        let column = self.column(number);
        let vectors = &mut self.members[number].vectors;
        vectors.enter(theta)?;
        let one = <T as Element>::from_f64(1.0);
        let minus = <T as Element>::from_f64(-1.0);
        put_column(one, &vectors.y, &mut self.inputs, column)?;
        put_column(minus, &vectors.constants, &mut self.shift, column)
    }

    /// Column c of W into the member's vectors.
    fn fetch(&mut self, number: usize) -> Result<(), OpError> {
        let column = self.column(number);
        take_column(&self.outputs, column, &mut self.members[number].vectors.raw)
    }

    /// From column c of X·Y to its slopes and curvatures, with their sums.
    fn judge_rows(&mut self, number: usize) -> Result<(), OpError> {
        let column = self.column(number);
        let [predictors, slopes, curvatures] = &mut self.column;
        let member = &mut self.members[number];
        take_column(&self.rows, column, predictors)?;
        let one = <T as Element>::from_f64(1.0);
        let evaluation = Evaluation {
            loss: member.loss,
            target: Some(&member.targets),
            weights: Some(&member.weights),
            offset: None,
            intercept: Intercept::Absent,
            scale: one,
        };
        let out = RowsOut {
            sums: &mut member.vectors.sums,
            residual: Some(slopes),
            curvature: Some(curvatures),
        };
        row_losses(&evaluation, predictors, out)?;
        put_column(one, slopes, &mut self.rows, column)?;
        put_column(one, curvatures, &mut self.trial, column)
    }

    /// X̃ᵀd of members whose curvature is new.
    fn level(&mut self, problems: &[usize]) -> Result<(), OpError> {
        let is_new = |number: &&usize| {
            let member = &self.members[**number];
            let known = member.is_levelled && member.loss == Loss::Squared;
            member.vectors.has_intercept && !known
        };
        let new: Vec<usize> = problems.iter().filter(is_new).copied().collect();
        if new.is_empty() {
            return Ok(());
        }
        let plain = ManyTerms::default();
        let (k, matrix) = (self.members.len(), self.matrix);
        matrix.transposed_many(k, &self.accepted, &plain, &mut self.outputs)?;
        let none = Ridge {
            coefficients: 0.0,
            intercept: 0.0,
        };
        for number in new {
            self.fetch(number)?;
            let member = &mut self.members[number];
            member
                .vectors
                .sums
                .copy_from_slice(&[0.0, member.curvature, member.curvature])?;
            member.vectors.leave(&self.still, none, &mut member.level)?;
            member.is_levelled = true;
        }
        Ok(())
    }
}

impl<T: Number> Objectives<T> for BatchedObjective<'_, T> {
    fn device(&self) -> &Device {
        self.matrix.device()
    }

    fn evaluate(&mut self, points: &mut [(usize, &mut Point<T>)]) -> Result<(), OpError> {
        for (number, point) in points.iter() {
            self.enter(*number, &point.theta)?;
        }
        let (k, matrix) = (self.members.len(), self.matrix);
        let shifted = ManyTerms {
            shift: Some(&self.shift),
            ..ManyTerms::default()
        };
        matrix.forward_many(k, &self.inputs, &shifted, &mut self.rows)?;
        for (number, _) in points.iter() {
            self.judge_rows(*number)?;
        }
        let plain = ManyTerms::default();
        matrix.transposed_many(k, &self.rows, &plain, &mut self.outputs)?;
        for (number, point) in points.iter_mut() {
            self.fetch(*number)?;
            let Member { vectors, ridge, .. } = &mut self.members[*number];
            vectors.leave(&point.theta, *ridge, &mut point.gradient)?;
        }
        for (number, point) in points {
            let member = &mut self.members[*number];
            let found = Value::of(member.vectors.figures()?);
            (point.value, point.norm) = (found.value, found.gradient_norm);
            if member.vectors.has_intercept {
                member.curvature = member.vectors.sums.to_vec()?[2];
            }
        }
        Ok(())
    }

    fn accept(&mut self, problems: &[usize]) -> Result<(), OpError> {
        if problems.len() == self.members.len() {
            std::mem::swap(&mut self.accepted, &mut self.trial);
        } else {
            for number in problems {
                let column = self.column(*number);
                let [between, ..] = &mut self.column;
                take_column(&self.trial, column, between)?;
                let one = <T as Element>::from_f64(1.0);
                put_column(one, between, &mut self.accepted, column)?;
            }
        }
        self.level(problems)
    }

    fn hessian_vectors(
        &mut self,
        directions: &mut [(usize, &Buffer<T>, &mut Buffer<T>)],
    ) -> Result<(), OpError> {
        for (number, direction, _) in directions.iter() {
            self.enter(*number, direction)?;
        }
        let terms = ManyTerms {
            weights: Some(RowWeights::OfEntries(&self.accepted)),
            shift: Some(&self.shift),
            ..ManyTerms::default()
        };
        let k = self.members.len();
        let (inputs, outputs) = (&self.inputs, &mut self.outputs);
        self.matrix.fused_many(k, inputs, &terms, outputs)?;
        for (number, direction, product) in directions {
            self.fetch(*number)?;
            let member = &mut self.members[*number];
            if member.vectors.has_intercept {
                let sums = &mut member.vectors.sums;
                self.dots.dot(&member.level, direction, sums, 1)?;
            }
            let vectors = &mut member.vectors;
            vectors.leave_product(direction, member.ridge, product)?;
        }
        Ok(())
    }
}

/// Vectors on a device, each uploaded once.
struct Shared<'a, T: Number>(Vec<(&'a [T], Arc<Buffer<T>>)>);

impl<T: Number> Default for Shared<'_, T> {
    fn default() -> Self {
        Shared(Vec::new())
    }
}

impl<'a, T: Number> Shared<'a, T> {
    fn upload(&mut self, device: &Device, values: &'a [T]) -> Result<Arc<Buffer<T>>, OpError> {
        if let Some((_, known)) = self.0.iter().find(|(known, _)| same(known, values)) {
            return Ok(known.clone());
        }
        let buffer = Arc::new(device.upload(values)?);
        self.0.push((values, buffer.clone()));
        Ok(buffer)
    }
}

/// Whether both have the same elements: lists of many rows, which are alike where two fits leave out the same rows.
fn same<T: Number>(one: &[T], other: &[T]) -> bool {
    one.len() == other.len()
        && parallel::first(one.len().div_ceil(COMPARED), |number| {
            let [one, other] = [one, other].map(|list| parallel::chunk(list, COMPARED, number));
            (one != other).then_some(())
        })
        .is_none()
}

/// Elements that one task compares.
const COMPARED: usize = 1 << 16;
