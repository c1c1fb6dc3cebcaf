//! Variants of a matrix product.

use gpu_kernels::Family;
use gpu_kernels::matmul::MatmulVariant;
use rayon::prelude::*;

use super::super::{Generator, Point, Refusal, Subject, TuneError};
use super::{Launches, answers, expect_launches, median_us, numbers, wide};
use crate::device::{Buffer, Device};
use crate::matrix::{Dtype, Element};
use crate::ops::matmul::{Choice, Factor, Layout, Workspace, choose, matmul_with};
use crate::ops::{Number, OpError};
use crate::plan::matmul::{Arithmetic, GeneratedTile, MatmulPlan, Problem, generated};
use crate::plan::tuned::{Launch, class};

/// Rows of the result that are judged, spread over all.
const JUDGED: usize = 32;

/// `C = A · B` of dense pseudo-random factors, with arithmetic of the elements' own precision.
#[derive(Debug)]
pub struct MatmulSubject<T: Number> {
    device: Device,
    size: (usize, usize, usize),
    host: [Vec<T>; 2],
    a: Buffer<T>,
    b: Buffer<T>,
    c: Buffer<T>,
    kept: Workspace<T>,
    launches: Launches<Choice>,
    /// The compiler of the tiles that no table has, which come last.
    generated: Option<(Generator, Vec<GeneratedTile>)>,
}

fn point((i, variant): (usize, MatmulVariant)) -> (Point, Choice) {
    let name = format!("{variant:?}");
    let launch = Launch::Matmul {
        variant: name.clone(),
    };
    let point = Point::new(name, vec![i as f64]).launched_by(launch);
    (point, Choice::Variant(variant))
}

impl<T: Number> MatmulSubject<T> {
    /// m × k times k × n on a device that launches.
    ///
    /// # Errors
    /// [`TuneError::NoLaunches`] on the CPU, [`TuneError::Op`] when memory is short.
    pub fn new(
        device: &Device,
        size: (usize, usize, usize),
    ) -> Result<MatmulSubject<T>, TuneError> {
        expect_launches(device)?;
        let (m, n, k) = size;
        let host = [numbers::<T>(m * k, 1), numbers::<T>(k * n, 2)];
        let planned = choose::<T>(device, size, Choice::Best)?;
        let variants = T::Matmul::entries().iter().map(|entry| entry.variant);
        let variants = variants
            .filter(MatmulVariant::is_plain)
            .enumerate()
            .map(point)
            .collect();
        let planners = || {
            let MatmulPlan { variant, parts, .. } = planned;
            let name = format!("the planner's: {variant:?} in {parts} parts");
            (Point::new(name, vec![-1.0]), Choice::Best)
        };
        Ok(MatmulSubject {
            a: device.upload(&host[0])?,
            b: device.upload(&host[1])?,
            c: device.zeros(m * n)?,
            device: device.clone(),
            size,
            host,
            kept: Workspace::default(),
            launches: Launches::new(variants, None, planners),
            generated: None,
        })
    }

    /// The same with tiles that no table has, each of which is compiled and loaded before it runs for the first time. A table of
    /// tuned launches has none of them: no program finds their kernels.
    pub fn with_generated(self, generator: Generator) -> MatmulSubject<T> {
        let limits = self.device.limits().expect("a device that launches");
        let all = generated(T::PRECISION, limits);
        let mut subject = self;
        for GeneratedTile { variant, .. } in &all {
            let coordinates = vec![subject.launches.points.len() as f64];
            let point = Point::new(format!("{variant:?}, generated"), coordinates);
            subject.launches.push((point, Choice::Variant(*variant)));
        }
        MatmulSubject {
            generated: Some((generator, all)),
            ..subject
        }
    }

    /// Compiles and loads the kernel of a point that no table has.
    fn generate(&self, point: usize) -> Result<(), Refusal> {
        let (Some((generator, all)), Choice::Variant(variant)) =
            (&self.generated, self.launches.all[point])
        else {
            return Ok(());
        };
        let Some(one) = all.iter().find(|one| one.variant == variant) else {
            return Ok(());
        };
        generator.make::<T::Matmul>(&self.device, variant, &one.template)
    }

    fn multiply(&mut self, point: usize) -> Result<(), OpError> {
        let (m, n, k) = self.size;
        let (left, right) = (Factor::new(&self.a, m, k), Factor::new(&self.b, k, n));
        let c = (&mut self.c, Layout::dense(m, n));
        let (one, zero) = (<T as Element>::from_f64(1.0), T::default());
        matmul_with(
            &mut self.kept,
            one,
            &left,
            &right,
            zero,
            c,
            self.launches.all[point],
        )
    }
}

impl<T: Number> Subject for MatmulSubject<T> {
    fn class(&self) -> String {
        let (m, n, k) = self.size;
        let [m, n, k] = [m, n, k].map(|size| size as u64);
        class::matmul(&Problem {
            m,
            n,
            k,
            precision: T::PRECISION,
            arithmetic: Arithmetic::Fp32,
        })
    }

    fn points(&self) -> &[Point] {
        &self.launches.points
    }

    fn incumbent(&self) -> usize {
        self.launches.incumbent
    }

    fn is_usable(&self) -> bool {
        answers(&self.device)
    }

    fn check(&mut self, point: usize) -> Result<(), Refusal> {
        self.launches.checked = None;
        self.generate(point)?;
        let nan = vec![<T as Element>::from_f64(f64::NAN); self.c.len()];
        self.c.copy_from_slice(&nan)?;
        self.multiply(point)?;
        judge(&self.host, &self.c.to_vec()?, self.size)?;
        self.launches.checked = Some(point);
        Ok(())
    }

    fn time(&mut self, point: usize, hopeless_us: f64) -> Result<f64, Refusal> {
        self.launches.expect_checked(point)?;
        let device = self.device.clone();
        median_us::<OpError>(&device, hopeless_us, || self.multiply(point))
    }
}

/// Rows of C against sums in f64: each element within γ(k) of the sum of its terms' magnitudes; none is NaN.
fn judge<T: Number>(
    [a, b]: &[Vec<T>; 2],
    c: &[T],
    (m, n, k): (usize, usize, usize),
) -> Result<(), Refusal> {
    if let Some(at) = c.iter().position(|c| !wide(*c).is_finite()) {
        return Err(Refusal::Wrong(format!("element {at} is not finite")));
    }
    let unit = match T::DTYPE {
        Dtype::F32 => f64::from(f32::EPSILON) / 2.0,
        Dtype::F64 => f64::EPSILON / 2.0,
    };
    let growth = (k as f64 + 2.0) * unit;
    let rows = JUDGED.min(m);
    let judged: Vec<usize> = (0..rows)
        .map(|i| i * (m - 1) / rows.max(2).saturating_sub(1))
        .collect();
    judged.into_par_iter().try_for_each(|row| {
        let (mut sums, mut bounds) = (vec![0.0; n], vec![0.0; n]);
        for (a, b) in a[row * k..][..k].iter().zip(b.chunks_exact(n)) {
            let a = wide(*a);
            for ((sum, bound), b) in sums.iter_mut().zip(&mut bounds).zip(b) {
                let term = a * wide(*b);
                *sum += term;
                *bound += term.abs();
            }
        }
        let found = c[row * n..][..n].iter().zip(sums.iter().zip(&bounds));
        for (col, (c, (sum, bound))) in found.enumerate() {
            let error = (wide(*c) - sum).abs();
            let bound = growth * bound;
            if error > bound || error.is_nan() {
                let text = format!("C({row}, {col}) is off by {error:.1e} of {bound:.1e}");
                return Err(Refusal::Wrong(text));
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_errors_are_refused() {
        let size @ (m, n, k) = (40, 9, 30);
        let host = [numbers::<f64>(m * k, 1), numbers::<f64>(k * n, 2)];
        let exact = |i: usize| -> f64 {
            let (row, col) = (i / n, i % n);
            (0..k)
                .map(|q| host[0][row * k + q] * host[1][q * n + col])
                .sum()
        };
        let right: Vec<f64> = (0..m * n).map(exact).collect();
        assert_eq!(judge(&host, &right, size), Ok(()));
        for planted in 0..20 {
            let mut wrong = right.clone();
            let at = [0, m * n - 1][planted % 2] / n * n + planted % n;
            wrong[at] = match planted % 3 {
                0 => f64::NAN,
                1 => wrong[at] + 1e-10,
                _ => 0.0,
            };
            assert!(judge(&host, &wrong, size).is_err(), "error {planted}");
        }
    }
}
