//! Coefficients in the units of X from what a solve ends with.

use super::design::Columns;
use super::weights::Weights;
use crate::device::{Buffer, DeviceError};
use crate::matrix::Element;
use crate::ops::Number;
use crate::parallel;

/// Elements of θ that are read at once: as many as all threads bring back and widen together.
const READ: usize = 1 << 22;

/// [`restore`] of θ on its device: those of one right-hand side are read into the list that they become, a part at a time.
pub(super) fn restore_from<T: Number>(
    columns: &Columns,
    theta: &Buffer<T>,
    k: usize,
) -> Result<Weights, DeviceError> {
    if k > 1 {
        return Ok(restore(columns, &theta.to_vec()?, k));
    }
    let mut coef = vec![0.0; theta.len()];
    let mut part = vec![T::default(); READ.min(theta.len())];
    for (number, coef) in coef.chunks_mut(READ).enumerate() {
        let part = &mut part[..coef.len()];
        theta.read(number * READ, part)?;
        parallel::update(coef, |j, to| *to = Element::to_f64(part[j]));
    }
    let last = if columns.intercept { coef.pop() } else { None };
    let (coef, intercept) = columns.restore(coef, last.unwrap_or(0.0));
    Ok(Weights {
        coef: vec![coef],
        intercept: vec![intercept],
    })
}

/// Coefficients in the units of X, one list per right-hand side.
pub(super) fn restore<T: Number>(columns: &Columns, theta: &[T], k: usize) -> Weights {
    let n = theta.len() / k - usize::from(columns.intercept);
    let side = |c: usize| {
        let coef: Vec<f64> = (0..n).map(|j| Element::to_f64(theta[j * k + c])).collect();
        let intercept = theta.get(n * k + c).map_or(0.0, |b| Element::to_f64(*b));
        columns.restore(coef, intercept)
    };
    let (coef, mut intercept): (_, Vec<f64>) = (0..k).map(side).unzip();
    if k > 1 {
        // The softmax does not see what is added to all intercepts: their sum is 0, as in scikit-learn.
        let mean = intercept.iter().sum::<f64>() / k as f64;
        intercept.iter_mut().for_each(|b| *b -= mean);
    }
    Weights { coef, intercept }
}
