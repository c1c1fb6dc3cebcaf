//! X as solvers see it: centred, scaled, with an intercept, none of which touches X.

use crate::device::Device;
use crate::matrix::Element;
use crate::ops::{Matrix, Number, OpError, Terms};

/// What is done to the columns of X around its products.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns {
    /// μ, subtracted from each column; only together with an intercept, which absorbs it.
    pub means: Option<Vec<f64>>,
    /// S, by which each column is multiplied after centring; 0 leaves a column out.
    pub scales: Option<Vec<f64>>,
    /// Whether a column of ones is appended.
    pub intercept: bool,
}

impl Columns {
    /// Coefficients of `X` and intercept, of those of X̃: `w = S·w̃`, `b = b̃ − μ·w`.
    pub fn restore(&self, coef: &[f64], intercept: f64) -> (Vec<f64>, f64) {
        let coef: Vec<f64> = match &self.scales {
            Some(scales) => coef.iter().zip(scales).map(|(w, s)| w * s).collect(),
            None => coef.to_vec(),
        };
        let shift: f64 = self
            .means
            .iter()
            .flatten()
            .zip(&coef)
            .map(|(mean, w)| mean * w)
            .sum();
        (coef, intercept - shift)
    }

    /// The inverse of [`Columns::restore`]; columns that are left out get 0.
    pub fn adopt(&self, coef: &[f64], intercept: f64) -> (Vec<f64>, f64) {
        let shift: f64 = self
            .means
            .iter()
            .flatten()
            .zip(coef)
            .map(|(mean, w)| mean * w)
            .sum();
        let divide = |(w, s): (&f64, &f64)| if *s == 0.0 { 0.0 } else { w / s };
        let coef = match &self.scales {
            Some(scales) => coef.iter().zip(scales).map(divide).collect(),
            None => coef.to_vec(),
        };
        (coef, intercept + shift)
    }
}

/// `X̃ = [(X − 1·μᵀ)·S, 1]` with k right-hand sides.
///
/// θ holds element j of right-hand side c at `j·k + c`, the intercepts last, at `n·k + c`.
pub struct Design<'a, T: Number> {
    matrix: &'a Matrix<T>,
    columns: &'a Columns,
    k: usize,
}

impl<'a, T: Number> Design<'a, T> {
    /// X with what is done to its columns, for `k` right-hand sides.
    pub fn new(matrix: &'a Matrix<T>, columns: &'a Columns, k: usize) -> Self {
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

    /// Column c of X̃·θ, m elements.
    ///
    /// # Errors
    /// When the device fails.
    pub fn forward(&self, theta: &[T], c: usize) -> Result<Vec<T>, OpError> {
        let (n, device) = (self.matrix.cols(), self.device());
        let y: Vec<f64> = (0..n)
            .map(|j| Element::to_f64(theta[j * self.k + c]) * self.scale(j))
            .collect();
        let centre: f64 = self
            .columns
            .means
            .iter()
            .flatten()
            .zip(&y)
            .map(|(mean, y)| mean * y)
            .sum();
        let intercept = if self.columns.intercept {
            Element::to_f64(theta[n * self.k + c])
        } else {
            0.0
        };
        let y: Vec<T> = y.iter().map(|y| <T as Element>::from_f64(*y)).collect();
        let shift = device.upload(&[<T as Element>::from_f64(centre - intercept)])?;
        let terms = Terms {
            shift: Some(&shift),
            ..Terms::default()
        };
        let mut product = device.zeros(self.rows())?;
        self.matrix
            .forward(&device.upload(&y)?, &terms, &mut product)?;
        Ok(product.to_vec()?)
    }

    /// Writes X̃ᵀ·`slopes` into column c of `out`.
    ///
    /// # Errors
    /// When the device fails.
    pub fn transposed(&self, slopes: &[T], c: usize, out: &mut [T]) -> Result<(), OpError> {
        let (n, device) = (self.matrix.cols(), self.device());
        let sum: f64 = slopes.iter().map(|slope| Element::to_f64(*slope)).sum();
        let mut product = device.zeros(n)?;
        let slopes = device.upload(slopes)?;
        self.matrix
            .transposed(&slopes, &Terms::default(), &mut product)?;
        for (j, raw) in product.to_vec()?.into_iter().enumerate() {
            let mean = self.columns.means.as_ref().map_or(0.0, |means| means[j]);
            let centred = Element::to_f64(raw) - mean * sum;
            out[j * self.k + c] = <T as Element>::from_f64(centred * self.scale(j));
        }
        if self.columns.intercept {
            out[n * self.k + c] = <T as Element>::from_f64(sum);
        }
        Ok(())
    }

    fn scale(&self, j: usize) -> f64 {
        self.columns.scales.as_ref().map_or(1.0, |scales| scales[j])
    }
}
