//! X as solvers see it: centred, scaled, with an intercept, none of which touches X.

use crate::device::{Buffer, Device};
use crate::matrix::{ColumnMeans, Element};
use crate::ops::{ManyTerms, Matrix, Number, OpError};
use crate::parallel;

/// What is done to the columns of X around its products.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns<'a> {
    /// μ, subtracted from each column; only together with an intercept, which absorbs it.
    pub means: Option<ColumnMeans<'a>>,
    /// S, by which each column is multiplied after centring; 0 leaves a column out.
    pub scales: Option<Vec<f64>>,
    /// Whether a column of ones is appended.
    pub intercept: bool,
}

impl Columns<'_> {
    /// Coefficients of `X` and intercept, of those of X̃: `w = S·w̃`, `b = b̃ − μ·w`.
    pub fn restore(&self, mut coef: Vec<f64>, intercept: f64) -> (Vec<f64>, f64) {
        if let Some(scales) = &self.scales {
            parallel::update(&mut coef, |j, w| *w *= scales[j]);
        }
        let shift = self.shift(&coef);
        (coef, intercept - shift)
    }

    /// The inverse of [`Columns::restore`]; columns that are left out get 0.
    pub fn adopt(&self, coef: &[f64], intercept: f64) -> (Vec<f64>, f64) {
        let shift = self.shift(coef);
        let divide = |(w, s): (&f64, &f64)| if *s == 0.0 { 0.0 } else { w / s };
        let coef = match &self.scales {
            Some(scales) => coef.iter().zip(scales).map(divide).collect(),
            None => coef.to_vec(),
        };
        (coef, intercept + shift)
    }

    /// μ·w.
    fn shift(&self, coef: &[f64]) -> f64 {
        let of_means =
            |means: &ColumnMeans<'_>| parallel::sum(coef.len(), |j| means.at(j) * coef[j]);
        self.means.as_ref().map_or(0.0, of_means)
    }
}

/// `X̃ = [(X − 1·μᵀ)·S, 1]` with k right-hand sides.
///
/// θ holds element j of right-hand side c at `j·k + c`, the intercepts last, at `n·k + c`.
pub struct Design<'a, T: Number> {
    matrix: &'a Matrix<T>,
    columns: &'a Columns<'a>,
    k: usize,
}

impl<'a, T: Number> Design<'a, T> {
    /// X with what is done to its columns, for `k` right-hand sides.
    pub fn new(matrix: &'a Matrix<T>, columns: &'a Columns<'a>, k: usize) -> Self {
        Design { matrix, columns, k }
    }

    /// Where vectors lie.
    pub fn device(&self) -> &'a Device {
        self.matrix.device()
    }

    /// m.
    pub fn rows(&self) -> usize {
        self.matrix.rows()
    }

    /// k.
    pub fn right_hand_sides(&self) -> usize {
        self.k
    }

    /// n·k, the elements of θ before the intercepts.
    pub fn coefficients(&self) -> usize {
        self.matrix.cols() * self.k
    }

    /// Elements of θ: n·k, and k more with an intercept.
    pub fn len(&self) -> usize {
        (self.matrix.cols() + usize::from(self.columns.intercept)) * self.k
    }

    /// Whether θ has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether sums are promised to repeat bit by bit.
    pub fn is_reproducible(&self) -> bool {
        self.matrix.is_reproducible()
    }

    /// X̃·θ, m × k, row by row; X is read once for up to eight right-hand sides.
    ///
    /// # Errors
    /// When the device fails.
    pub fn forward(&self, theta: &[T]) -> Result<Vec<T>, OpError> {
        Ok(self.forward_there(theta)?.to_vec()?)
    }

    /// [`Design::forward`], left on the device.
    ///
    /// # Errors
    /// As [`Design::forward`].
    pub fn forward_there(&self, theta: &[T]) -> Result<Buffer<T>, OpError> {
        let (n, k, device) = (self.matrix.cols(), self.k, self.device());
        let mut centres = vec![0.0; k];
        let mut y = Vec::with_capacity(n * k);
        for (i, w) in theta[..n * k].iter().enumerate() {
            let scaled = Element::to_f64(*w) * self.scale(i / k);
            centres[i % k] += self.mean(i / k) * scaled;
            y.push(<T as Element>::from_f64(scaled));
        }
        let intercept = |c: usize| theta.get(n * k + c).map_or(0.0, |b| Element::to_f64(*b));
        let shifts = centres.iter().enumerate();
        let shifts: Vec<T> = shifts
            .map(|(c, centre)| <T as Element>::from_f64(centre - intercept(c)))
            .collect();
        let shift = device.upload(&shifts)?;
        let terms = ManyTerms {
            shift: Some(&shift),
            ..ManyTerms::default()
        };
        let mut product = device.zeros(self.rows() * k)?;
        self.matrix
            .forward_many(k, &device.upload(&y)?, &terms, &mut product)?;
        Ok(product)
    }

    /// X̃ᵀ·`slopes`, in the order of θ, of m × k slopes, row by row.
    ///
    /// # Errors
    /// When the device fails.
    pub fn transposed(&self, slopes: &[T]) -> Result<Vec<T>, OpError> {
        let (n, k, device) = (self.matrix.cols(), self.k, self.device());
        let mut sums = vec![0.0; k];
        for (i, slope) in slopes.iter().enumerate() {
            sums[i % k] += Element::to_f64(*slope);
        }
        let mut product = device.zeros(n * k)?;
        let slopes = device.upload(slopes)?;
        self.matrix
            .transposed_many(k, &slopes, &ManyTerms::default(), &mut product)?;
        let mut out = product.to_vec()?;
        for (i, raw) in out.iter_mut().enumerate() {
            let centred = Element::to_f64(*raw) - self.mean(i / k) * sums[i % k];
            *raw = <T as Element>::from_f64(centred * self.scale(i / k));
        }
        if self.columns.intercept {
            out.extend(sums.into_iter().map(<T as Element>::from_f64));
        }
        Ok(out)
    }

    fn mean(&self, j: usize) -> f64 {
        self.columns.means.as_ref().map_or(0.0, |means| means.at(j))
    }

    fn scale(&self, j: usize) -> f64 {
        self.columns.scales.as_ref().map_or(1.0, |scales| scales[j])
    }
}
