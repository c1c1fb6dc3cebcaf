//! Sums over kernels in f64: `f(xᵢ) = Σⱼ k(xᵢ, yⱼ)·wⱼ`, its gradient, and the magnitudes that bounds are relative to.
//!
//! Points are row-major, one after the other, `dims` coordinates each.

use gpu_kernels::kernel_sum::KernelFunction;

/// k(x, y) with length scale `length`.
///
/// ```
/// use gpu_kernels::kernel_sum::KernelFunction;
/// use warpfuse::reference::kernel_sum::value;
/// let k = value(KernelFunction::Gaussian, 2.0, &[1.0, 0.0], &[1.0, 2.0]);
/// assert_eq!(k, f64::exp(-0.5));
/// ```
pub fn value(function: KernelFunction, length: f64, x: &[f64], y: &[f64]) -> f64 {
    let r = distance(x, y) / length;
    match function {
        KernelFunction::Gaussian => (-r * r / 2.0).exp(),
        KernelFunction::Laplace => (-manhattan(x, y) / length).exp(),
        KernelFunction::Matern12 => (-r).exp(),
        KernelFunction::Matern32 => {
            let a = 3.0_f64.sqrt() * r;
            (1.0 + a) * (-a).exp()
        }
        KernelFunction::Matern52 => {
            let a = 5.0_f64.sqrt() * r;
            (1.0 + a + a * a / 3.0) * (-a).exp()
        }
        KernelFunction::Cauchy => 1.0 / (1.0 + r * r),
        KernelFunction::InverseMultiquadric => 1.0 / (1.0 + r * r).sqrt(),
    }
}

/// ∂k(x, y)/∂x_d; 0 between coincident points, where some functions have no derivative.
pub fn derivative(function: KernelFunction, length: f64, x: &[f64], y: &[f64], d: usize) -> f64 {
    let (difference, r) = (x[d] - y[d], distance(x, y) / length);
    let k = value(function, length, x, y);
    let along = difference / (length * length);
    match function {
        KernelFunction::Gaussian => -along * k,
        KernelFunction::Laplace if difference == 0.0 => 0.0,
        KernelFunction::Laplace => -difference.signum() / length * k,
        KernelFunction::Matern12 if r == 0.0 => 0.0,
        KernelFunction::Matern12 => -along / r * k,
        KernelFunction::Matern32 => -3.0 * along * (-3.0_f64.sqrt() * r).exp(),
        KernelFunction::Matern52 => {
            let a = 5.0_f64.sqrt() * r;
            -5.0 / 3.0 * along * (1.0 + a) * (-a).exp()
        }
        KernelFunction::Cauchy => -2.0 * along * k * k,
        KernelFunction::InverseMultiquadric => -along * k * k * k,
    }
}

/// `Σⱼ k(x, yⱼ)·wⱼ` for one target.
pub fn sum(function: KernelFunction, length: f64, x: &[f64], sources: &[f64], w: &[f64]) -> f64 {
    let points = sources.chunks_exact(x.len());
    let terms = points
        .zip(w)
        .map(|(y, w)| value(function, length, x, y) * w);
    terms.sum()
}

/// `Σⱼ wⱼ·∂k(x, yⱼ)/∂x_d` for one target.
pub fn gradient(
    function: KernelFunction,
    length: f64,
    x: &[f64],
    sources: &[f64],
    w: &[f64],
    d: usize,
) -> f64 {
    let points = sources.chunks_exact(x.len());
    let terms = points
        .zip(w)
        .map(|(y, w)| w * derivative(function, length, x, y, d));
    terms.sum()
}

fn distance(x: &[f64], y: &[f64]) -> f64 {
    let squares = x.iter().zip(y).map(|(x, y)| (x - y) * (x - y));
    squares.sum::<f64>().sqrt()
}

fn manhattan(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y).abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_one_at_zero_and_falls() {
        for function in KernelFunction::ALL {
            let at = |x: f64| value(function, 1.5, &[x, 0.0], &[0.0, 0.0]);
            assert_eq!(at(0.0), 1.0, "{function}");
            assert!(at(1.0) < 1.0 && at(2.0) < at(1.0), "{function}");
        }
    }

    #[test]
    fn derivatives_agree_with_differences() {
        let (y, step) = ([0.2, -0.3, 0.4], 1e-6);
        for function in KernelFunction::ALL {
            for d in 0..3 {
                let at = |shift: f64| {
                    let mut x = [1.0, 0.5, -0.7];
                    x[d] += shift;
                    value(function, 0.8, &x, &y)
                };
                let slope = (at(step) - at(-step)) / (2.0 * step);
                let exact = derivative(function, 0.8, &[1.0, 0.5, -0.7], &y, d);
                assert!(
                    (slope - exact).abs() < 1e-8,
                    "{function} {d}: {slope} {exact}"
                );
            }
        }
    }

    #[test]
    fn sums_add_the_terms() {
        let (f, points) = (KernelFunction::Cauchy, [0.0, 1.0, 3.0]);
        assert_eq!(sum(f, 1.0, &[0.0], &points, &[1.0, 2.0, 10.0]), 3.0);
        let slope = gradient(f, 1.0, &[0.0], &points, &[1.0, 2.0, 0.0], 0);
        assert_eq!(slope, 1.0);
    }
}
