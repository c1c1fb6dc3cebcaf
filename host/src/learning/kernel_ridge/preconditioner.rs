//! A preconditioner for K + λI from a few columns of K.
//!
//! Partial Cholesky with pivots: K ≈ L·Lᵀ, L N × r, taking as pivot the point that the columns so far explain least.
//! Then P = L·Lᵀ + λI, whose inverse is, with W = L·R⁻¹ and R the upper Cholesky factor of LᵀL + λI,
//! `P⁻¹ = (I − W·Wᵀ) / λ`: two products with an N × r matrix. Work O(N·r²) once, memory O(N·r).
//!
//! Source: H. Harbrecht, M. Peters and R. Schneider, "On the low-rank approximation by the pivoted Cholesky
//! decomposition", *Appl. Numer. Math.* 62(4), 2012; as a preconditioner, J. Gardner et al., "GPyTorch", NeurIPS 2018.

use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;

use crate::device::group::Group;
use crate::device::{Buffer, Device};
use crate::matrix::{Element, Features};
use crate::ops::{Kernel, Matrix, Number, OpError, Terms, vector};

/// A pivot this small is rounding noise: the columns so far explain all of K.
const NEGLIGIBLE: f64 = 1e-12;

/// P⁻¹ on a device.
pub(super) struct Preconditioner<T: Number> {
    /// W, unless r = 0: then P = I.
    factor: Option<Factor<T>>,
}

struct Factor<T: Number> {
    /// Whole on every member of a group.
    w: Matrix<T>,
    /// Wᵀ·v.
    short: Buffer<T>,
    inverse_alpha: T,
    group: Option<Group>,
}

impl<T: Number> Preconditioner<T> {
    /// Of rank `rank` at most; 0 for none. Members of a group have all points.
    pub fn new(
        device: &Device,
        kernel: Kernel,
        points: ArrayView2<'_, T>,
        alpha: f64,
        rank: usize,
    ) -> Result<Self, OpError> {
        let group = device.group();
        let l = of_first(group, points.nrows(), || {
            let mut l = pivoted_cholesky(kernel, points, rank);
            if l.ncols() > 0 && alpha != 0.0 {
                orthogonalise(&mut l, alpha);
            }
            l
        })?;
        if l.ncols() == 0 || alpha == 0.0 {
            return Ok(Preconditioner { factor: None });
        }
        let w = l.mapv(<T as Element>::from_f64);
        let short = device.zeros(w.ncols())?;
        let w = Matrix::new(&device.alone(), Features::Dense(w))?;
        let inverse_alpha = <T as Element>::from_f64(1.0 / alpha);
        let factor = Some(Factor {
            w,
            short,
            inverse_alpha,
            group: group.cloned(),
        });
        Ok(Preconditioner { factor })
    }

    /// z = P⁻¹·r.
    pub fn apply(&mut self, r: &Buffer<T>, z: &mut Buffer<T>) -> Result<(), OpError> {
        let one = <T as Element>::from_f64(1.0);
        let Some(Factor {
            w,
            short,
            inverse_alpha,
            group,
        }) = &mut self.factor
        else {
            return vector::scaled_copy(one, r, z);
        };
        w.transposed(r, &Terms::default(), short)?;
        if let Some(group) = group {
            // GPUs may add in any order: members that had other bits would stop at other iterations.
            let mut lengths = vec![0; group.size()];
            lengths[0] = short.len();
            group.gather_on_devices(short, &lengths)?;
        }
        let terms = Terms {
            alpha: -*inverse_alpha,
            addend: Some((*inverse_alpha, r)),
            ..Terms::default()
        };
        w.forward(short, &terms, z)
    }
}

/// What rank 0 computes, an array of `rows` rows, on every member of the group.
fn of_first(
    group: Option<&Group>,
    rows: usize,
    compute: impl FnOnce() -> Array2<f64>,
) -> Result<Array2<f64>, OpError> {
    let Some(group) = group else {
        return Ok(compute());
    };
    let own = group.is_first().then(compute);
    let mut cols = [own.as_ref().map_or(0, Array2::ncols)];
    group.broadcast(0, &mut cols)?;
    let mut all = own.unwrap_or_else(|| Array2::zeros((rows, cols[0])));
    let values = all.as_slice_mut().expect("an array in standard layout");
    group.broadcast(0, values)?;
    Ok(all)
}

/// L, N × r.
fn pivoted_cholesky<T: Number>(
    kernel: Kernel,
    points: ArrayView2<'_, T>,
    rank: usize,
) -> Array2<f64> {
    let n = points.nrows();
    let rank = rank.min(n);
    let mut l = Array2::<f64>::zeros((n, rank));
    let mut unexplained = vec![1.0_f64; n];
    let scaled = points.mapv(|value| Element::to_f64(value) * kernel.scale());
    for column in 0..rank {
        let Some((pivot, largest)) = largest(&unexplained) else {
            break;
        };
        if largest <= NEGLIGIBLE {
            // Points that repeat: the other columns stay 0. A slice would keep the pitch of all columns.
            let found = l.slice(ndarray::s![.., ..column]);
            return found.as_standard_layout().into_owned();
        }
        let root = largest.sqrt();
        let of_pivot = l.row(pivot).to_owned();
        let at_pivot = scaled.row(pivot);
        let rows = l
            .as_slice_mut()
            .expect("an array in standard layout")
            .par_chunks_mut(rank);
        rows.zip(&mut unexplained)
            .enumerate()
            .for_each(|(i, (row, unexplained))| {
                let differences = scaled.row(i).into_iter().zip(at_pivot).map(|(x, y)| x - y);
                let known: f64 = row[..column]
                    .iter()
                    .zip(&of_pivot)
                    .map(|(a, b)| a * b)
                    .sum();
                row[column] = (kernel.function().value(differences) - known) / root;
                *unexplained -= row[column] * row[column];
            });
        unexplained[pivot] = 0.0;
    }
    l
}

fn largest(values: &[f64]) -> Option<(usize, f64)> {
    let indexed = values.iter().copied().enumerate();
    indexed.max_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// L := L·R⁻¹, R upper triangular with RᵀR = LᵀL + λI.
fn orthogonalise(l: &mut Array2<f64>, alpha: f64) {
    let rank = l.ncols();
    let gram = l.t().dot(l) + Array2::<f64>::eye(rank) * alpha;
    let lower = cholesky(gram);
    l.as_slice_mut()
        .expect("an array in standard layout")
        .par_chunks_mut(rank)
        .for_each(|row| {
            // row · R⁻¹ by forward substitution with Rᵀ, which is lower triangular.
            for j in 0..rank {
                let known: f64 = (0..j).map(|k| lower[(j, k)] * row[k]).sum();
                row[j] = (row[j] - known) / lower[(j, j)];
            }
        });
}

/// The lower factor of a positive definite matrix.
fn cholesky(mut a: Array2<f64>) -> Array2<f64> {
    let n = a.nrows();
    for j in 0..n {
        for k in 0..j {
            let factor = a[(j, k)];
            for i in j..n {
                a[(i, j)] -= a[(i, k)] * factor;
            }
        }
        // Gram matrices plus λI are positive definite; rounding must not make a root of a negative number.
        let pivot = a[(j, j)].max(f64::MIN_POSITIVE).sqrt();
        for i in j..n {
            a[(i, j)] /= pivot;
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::kernel_sum::KernelFunction;

    #[test]
    fn the_full_rank_inverts() {
        let points = Array2::from_shape_fn((12, 2), |(i, d)| (i * (3 + 4 * d) % 12) as f64 / 4.0);
        let kernel = Kernel::new(KernelFunction::Matern12, 1.0).expect("a length scale");
        let (alpha, device) = (0.3, Device::cpu());
        let mut inverse =
            Preconditioner::new(&device, kernel, points.view(), alpha, 12).expect("fits");
        let k = |i: usize, j: usize| {
            let pairs = points.row(i).into_iter().zip(points.row(j));
            kernel
                .function()
                .value(pairs.map(|(x, y)| (x - y) * kernel.scale()))
        };
        let x: Vec<f64> = (0..12).map(|i| (i as f64).sin()).collect();
        let product = |i: usize| (0..12).map(|j| k(i, j) * x[j]).sum::<f64>() + alpha * x[i];
        let b: Vec<f64> = (0..12).map(product).collect();
        let mut z = device.zeros(12).expect("room");
        let b = device.upload(&b).expect("room");
        inverse.apply(&b, &mut z).expect("lengths fit");
        let z = z.to_vec().expect("host memory");
        assert!(
            z.iter().zip(&x).all(|(z, x)| (z - x).abs() < 1e-10),
            "{z:?}"
        );
    }

    /// Its rank ends below what is requested: the kernel matrix has two equal rows.
    #[test]
    fn points_may_repeat() {
        let points = ndarray::array![[0.0, 1.0], [2.0, 0.5], [0.0, 1.0], [1.0, 1.0]];
        let params = crate::learning::KernelRidge::params().alpha(0.5);
        let targets = [1.0, 2.0, 3.0, 4.0];
        let model = params.fit(&Device::cpu(), points.view(), &targets);
        let model = model.expect("equal points have one mean");
        let a = model.dual_coef();
        // (K + αI)·a = t: rows 0 and 2 of K are equal, so that α·(a₂ − a₀) = t₂ − t₀.
        assert!((0.5 * (a[2] - a[0]) - 2.0).abs() < 1e-5, "{a:?}");
    }
}
