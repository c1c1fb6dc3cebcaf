//! XᵀWX by products with several right-hand sides, and its inverse.

use faer::linalg::solvers::DenseSolveCore;
use faer::{Mat, Side};

use crate::matrix::Element;
use crate::ops::many::RowWeights;
use crate::ops::{ManyTerms, Matrix, Number, OpError, Terms};

/// Right-hand sides of a product: X is read once for eight.
const SIDES: usize = 8;
/// Share of a column's weighted Σx² below which a centred column counts as constant.
const CONSTANT: f64 = 1e-15;
/// The largest variance inflation that leaves digits to a standard error.
const DEPENDENT: f64 = 1e13;

/// XᵀWX of columns centred at their W-weighted means, where there is an intercept, so that it decouples.
pub(super) struct Information {
    matrix: Mat<f64>,
    means: Option<Vec<f64>>,
    /// Σ W.
    total: f64,
    /// Columns with a coefficient.
    free: Vec<usize>,
}

impl Information {
    pub(super) fn of<T: Number>(
        x: &Matrix<T>,
        weights: &[f64],
        intercept: bool,
    ) -> Result<Information, OpError> {
        let (n, device) = (x.cols(), x.device());
        let total: f64 = weights.iter().sum();
        let narrow: Vec<T> = weights
            .iter()
            .map(|w| <T as Element>::from_f64(*w))
            .collect();
        let rows = device.upload(&narrow)?;
        let means = match intercept {
            true => {
                let mut sums = device.zeros(n)?;
                x.transposed(&rows, &Terms::default(), &mut sums)?;
                let sums: Vec<T> = sums.to_vec()?;
                Some(
                    sums.iter()
                        .map(|sum| Element::to_f64(*sum) / total)
                        .collect::<Vec<f64>>(),
                )
            }
            false => None,
        };
        let mut matrix = Mat::zeros(n, n);
        for first in (0..n).step_by(SIDES) {
            let sides = SIDES.min(n - first);
            let mut y = vec![T::default(); n * sides];
            (0..sides)
                .for_each(|side| y[(first + side) * sides + side] = <T as Element>::from_f64(1.0));
            let shift = match &means {
                Some(means) => {
                    let shift = means[first..first + sides].iter();
                    let shift: Vec<T> = shift.map(|mean| <T as Element>::from_f64(*mean)).collect();
                    Some(device.upload(&shift)?)
                }
                None => None,
            };
            let terms = ManyTerms {
                weights: Some(RowWeights::OfRows(&rows)),
                shift: shift.as_ref(),
                ..ManyTerms::default()
            };
            let mut product = device.zeros(n * sides)?;
            x.fused_many(sides, &device.upload(&y)?, &terms, &mut product)?;
            for (at, value) in product.to_vec()?.into_iter().enumerate() {
                matrix[(at / sides, first + at % sides)] = Element::to_f64(value);
            }
        }
        let varies = |j: &usize| {
            let mean = means.as_ref().map_or(0.0, |means| means[*j]);
            let centred: f64 = matrix[(*j, *j)];
            centred > CONSTANT * (centred + total * mean * mean)
        };
        let free = (0..n).filter(varies).collect();
        Ok(Information {
            matrix,
            means,
            total,
            free,
        })
    }

    /// Coefficients and intercept.
    pub(super) fn coefficients(&self) -> usize {
        self.free.len() + usize::from(self.means.is_some())
    }

    /// The diagonal of the inverse, for columns with a coefficient, and the intercept's; `None` where columns depend on
    /// each other.
    pub(super) fn variances(&self) -> Option<(Vec<Option<f64>>, Option<f64>)> {
        let (free, h) = (&self.free, &self.matrix);
        let scales: Vec<f64> = free.iter().map(|&j| h[(j, j)].sqrt().recip()).collect();
        let scaled = Mat::from_fn(free.len(), free.len(), |a, b| {
            let both = 0.5 * (h[(free[a], free[b])] + h[(free[b], free[a])]);
            scales[a] * scales[b] * both
        });
        let inverse = scaled.llt(Side::Lower).ok()?.inverse();
        let is_sure = (0..free.len()).all(|a| (0.0..DEPENDENT).contains(&inverse[(a, a)]));
        if !is_sure {
            return None;
        }
        let mut variances = vec![None; h.nrows()];
        for (a, &j) in free.iter().enumerate() {
            variances[j] = Some(inverse[(a, a)] * scales[a] * scales[a]);
        }
        let intercept = self.means.as_ref().map(|means| {
            let along: Vec<f64> = free
                .iter()
                .zip(&scales)
                .map(|(&j, s)| means[j] * s)
                .collect();
            let product = |a: usize| {
                (0..along.len())
                    .map(|b| inverse[(a, b)] * along[b])
                    .sum::<f64>()
            };
            let square: f64 = (0..along.len()).map(|a| along[a] * product(a)).sum();
            1.0 / self.total + square
        });
        Some((variances, intercept))
    }
}
