//! Losses of a block of rows, and their sums.

use gpu_kernels::objective::{AnyLoss, Logistic, Loss, Point, RowLoss, Squared};

use super::super::dispatch::dispatch;
use super::{BLOCK, Element, Evaluation, Sums};
use crate::parallel;

/// Evaluates blocks and adds up what they contribute.
pub struct Losses<'a, T> {
    evaluation: Evaluation<'a, T>,
    slopes: [T; BLOCK],
    curvatures: [T; BLOCK],
    sums: Sums,
}

/// g and d of a block.
pub struct Points<'a, T> {
    pub slopes: &'a [T],
    pub curvatures: &'a [T],
}

impl<'a, T: Element> Losses<'a, T> {
    pub fn new(evaluation: &Evaluation<'a, T>) -> Self {
        let loss = evaluation.loss.simplified();
        Losses {
            evaluation: Evaluation {
                loss,
                ..*evaluation
            },
            slopes: [T::default(); BLOCK],
            curvatures: [T::default(); BLOCK],
            sums: [0.0; 3],
        }
    }

    /// Σ v·loss, Σ g, Σ d of all blocks so far.
    pub fn sums(&self) -> Sums {
        self.sums
    }

    /// The rows from `first` on, given their products with y.
    pub fn evaluate(&mut self, first: usize, dots: &[f64]) -> Points<'_, T> {
        match self.evaluation.loss {
            Loss::Squared => self.evaluate_with(Squared, first, dots),
            Loss::Logistic => self.evaluate_with(Logistic, first, dots),
            other => self.evaluate_with(AnyLoss(other.code()), first, dots),
        }
        Points {
            slopes: &self.slopes[..dots.len()],
            curvatures: &self.curvatures[..dots.len()],
        }
    }

    fn evaluate_with(&mut self, loss: impl RowLoss<T>, first: usize, dots: &[f64]) {
        dispatch(
            #[inline(always)]
            || {
                let mut sums = [0.0; 3];
                for (i, &dot) in dots.iter().enumerate() {
                    let point = point(&loss, &self.evaluation, first + i, dot);
                    self.slopes[i] = point.slope;
                    self.curvatures[i] = point.curvature;
                    for (sum, part) in
                        sums.iter_mut()
                            .zip([point.loss, point.slope, point.curvature])
                    {
                        *sum += Into::<f64>::into(part);
                    }
                }
                for (total, sum) in self.sums.iter_mut().zip(sums) {
                    *total += sum;
                }
            },
        );
    }
}

#[inline(always)]
fn point<T: Element>(
    loss: &impl RowLoss<T>,
    evaluation: &Evaluation<'_, T>,
    row: usize,
    dot: f64,
) -> Point<T> {
    let Given {
        target,
        weight,
        offset,
    } = given(evaluation, row);
    let t = dot + evaluation.intercept.into() + offset.into();
    loss.at(T::narrow(t), target).weighted(weight)
}

/// Where what rows contribute goes, one element for each.
pub struct Rows<'a, T> {
    pub losses: &'a mut [T],
    pub slopes: &'a mut [T],
    pub curvatures: &'a mut [T],
}

/// Rows that one thread judges at a time.
const ROWS: usize = 4096;

/// What rows contribute, in the arithmetic of the kernels.
pub fn judge<T: Element>(products: &[T], evaluation: &Evaluation<'_, T>, out: Rows<'_, T>) {
    let pieces = (out.losses.chunks_mut(ROWS))
        .zip(out.slopes.chunks_mut(ROWS))
        .zip(out.curvatures.chunks_mut(ROWS));
    parallel::for_each_item(pieces, |number, ((losses, slopes), curvatures)| {
        let out = Rows {
            losses,
            slopes,
            curvatures,
        };
        let first = number * ROWS;
        match evaluation.loss.simplified() {
            Loss::Squared => judge_with(Squared, products, evaluation, (first, out)),
            Loss::Logistic => judge_with(Logistic, products, evaluation, (first, out)),
            other => judge_with(AnyLoss(other.code()), products, evaluation, (first, out)),
        }
    });
}

fn judge_with<T: Element>(
    loss: impl RowLoss<T>,
    products: &[T],
    evaluation: &Evaluation<'_, T>,
    (first, out): (usize, Rows<'_, T>),
) {
    let Rows {
        losses,
        slopes,
        curvatures,
    } = out;
    dispatch(
        #[inline(always)]
        || {
            let products = &products[first..][..losses.len()];
            for (i, product) in products.iter().enumerate() {
                let Given {
                    target,
                    weight,
                    offset,
                } = given(evaluation, first + i);
                let t = *product + evaluation.intercept + offset;
                let point = loss.at(t, target).weighted(weight);
                losses[i] = point.loss;
                slopes[i] = point.slope;
                curvatures[i] = point.curvature;
            }
        },
    );
}

/// b, v and o of a row.
struct Given<T> {
    target: T,
    weight: T,
    offset: T,
}

#[inline(always)]
fn given<T: Element>(evaluation: &Evaluation<'_, T>, row: usize) -> Given<T> {
    let of = |vector: Option<&[T]>| vector.map_or(T::default(), |vector| vector[row]);
    Given {
        target: of(evaluation.target),
        weight: match evaluation.weights {
            Some(weights) => weights[row] * evaluation.scale,
            None => evaluation.scale,
        },
        offset: of(evaluation.offset),
    }
}
