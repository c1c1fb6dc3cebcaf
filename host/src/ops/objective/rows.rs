//! Losses of rows whose products with the coefficients are known: for metrics, and for products of other makers.

use super::host::on_host;
use super::row_args::row_args;
use super::row_kernel::RowKernel;
use super::{Evaluation, Intercept, Loss, ObjectiveOut, ObjectiveSums};
use crate::cpu::objective as cpu;
use crate::device::Buffer;
use crate::ops::{Number, OpError, checks};
use crate::plan::fused::Summation;

/// Where losses of rows go.
#[derive(Debug)]
pub struct RowsOut<'a, T: Number> {
    /// Σ v·loss, Σ g, Σ d: three elements; see [`ObjectiveSums`].
    pub sums: &'a mut Buffer<f64>,
    /// g, one element per row.
    pub residual: Option<&'a mut Buffer<T>>,
    /// d, one element per row.
    pub curvature: Option<&'a mut Buffer<T>>,
}

/// Σ v·loss(tᵢ, bᵢ) with tᵢ = `products`ᵢ + c + oᵢ, and its derivatives by t.
///
/// # Errors
/// [`OpError::Length`] when a vector does not fit the products, [`OpError::Parameter`] with [`Intercept::Last`], which
/// needs coefficients, [`OpError::Device`] when the device fails.
///
/// ```
/// use warpfuse::device::Device;
/// use warpfuse::ops::objective::{Evaluation, Loss, ObjectiveSums, RowsOut, row_losses};
/// let device = Device::cpu();
/// let (t, target) = (device.upload(&[0.0, 2.0])?, device.upload(&[1.0, 5.0])?);
/// let mut sums = device.zeros(ObjectiveSums::LEN)?;
/// let out = RowsOut { sums: &mut sums, residual: None, curvature: None };
/// row_losses(&Evaluation::new(Loss::Squared, &target), &t, out)?;
/// assert_eq!(sums.to_vec()?, [0.5 + 4.5, -4.0, 2.0]);
/// # Ok::<(), warpfuse::ops::OpError>(())
/// ```
pub fn row_losses<T: Number>(
    evaluation: &Evaluation<'_, T>,
    products: &Buffer<T>,
    out: RowsOut<'_, T>,
) -> Result<(), OpError> {
    check(evaluation, products, &out)?;
    let rows = products.len();
    let device = products.device();
    if device.is_cpu() {
        let sums = cpu::row_losses(
            host(products),
            &on_host(evaluation),
            out.residual.map(host_mut),
            out.curvature.map(host_mut),
        );
        host_mut(out.sums).copy_from_slice(&sums);
        return Ok(());
    }
    out.sums.fill_zero()?;
    if rows == 0 {
        return Ok(());
    }
    let mut out = ObjectiveOut {
        sums: out.sums,
        gradient: None,
        addend: None,
        residual: out.residual,
        curvature: out.curvature,
        solve: None,
    };
    let (rows_args, _) = row_args(evaluation, products, &mut out, 0..rows);
    RowKernel::new(&device, rows, Summation::Free)?.launch(products.input(), rows_args)
}

/// Σ v·loss of rows of the host with these predictors, targets and weights; with room for them also the derivatives g and
/// d of v·loss.
///
/// # Panics
/// When lengths differ.
///
/// ```
/// use warpfuse::ops::objective::{Loss, losses_on_host};
/// let mut slopes = [0.0; 2];
/// let mut curvatures = [0.0; 2];
/// let out = Some((&mut slopes[..], &mut curvatures[..]));
/// assert_eq!(losses_on_host(Loss::Squared, &[0.0, 2.0], (&[1.0, 5.0], &[1.0, 1.0]), out), 5.0);
/// assert_eq!(slopes, [-1.0, -3.0]);
/// ```
pub fn losses_on_host(
    loss: Loss,
    predictors: &[f64],
    (targets, weights): (&[f64], &[f64]),
    derivatives: Option<(&mut [f64], &mut [f64])>,
) -> f64 {
    let evaluation = cpu::Evaluation {
        loss,
        target: Some(targets),
        weights: Some(weights),
        offset: None,
        intercept: 0.0,
        scale: 1.0,
    };
    let (slopes, curvatures) = derivatives.unzip();
    cpu::row_losses(predictors, &evaluation, slopes, curvatures)[0]
}

fn check<T: Number>(
    evaluation: &Evaluation<'_, T>,
    products: &Buffer<T>,
    out: &RowsOut<'_, T>,
) -> Result<(), OpError> {
    let rows = products.len();
    let vectors = [
        ("the target", evaluation.target),
        ("the weights", evaluation.weights),
        ("the offset", evaluation.offset),
        ("the residual", out.residual.as_deref()),
        ("the curvature", out.curvature.as_deref()),
    ];
    for (what, vector) in vectors {
        if let Some(vector) = vector {
            checks::same_length(what, vector, rows)?;
        }
    }
    if let Intercept::Given(c) = evaluation.intercept {
        checks::same_length("the intercept", c, 1)?;
    }
    if let Intercept::Last = evaluation.intercept {
        return Err(OpError::Parameter {
            name: "the intercept",
            expected: "given or absent where there are no coefficients",
            found: f64::NAN,
        });
    }
    checks::length("the sums", ObjectiveSums::LEN, out.sums.len())
}

const ON_HOST: &str = "vectors of a CPU are host memory";

fn host<T: bytemuck::Pod>(buffer: &Buffer<T>) -> &[T] {
    buffer.as_host_slice().expect(ON_HOST)
}

fn host_mut<T: bytemuck::Pod>(buffer: &mut Buffer<T>) -> &mut [T] {
    buffer.as_host_slice_mut().expect(ON_HOST)
}
