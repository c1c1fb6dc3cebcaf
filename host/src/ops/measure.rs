//! Launches of a product, timed beside their predictions: how a launch model is judged on a device.

use std::cmp::Ordering;

use serde::Serialize;

use super::{Matrix, MatrixOptions, Number, OpError, Terms};
use crate::device::{Buffer, Device, DeviceError, Timer};
use crate::matrix::Element;
use crate::plan::fused::{Forced, Plan, Product, Strategy, Trial};

/// A launch that took longer than this many times the fastest so far is not timed again.
const HOPELESS: f64 = 1.25;
/// What a sample lasts at least, microseconds: calls follow one another without a gap.
const SAMPLE_US: f64 = 1_000.0;
const MOST_CALLS: f64 = 64.0;
/// An odd number, so that there is a middle one.
const SAMPLES: usize = 7;

/// Which launches are timed, of all that the planner weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selection {
    /// This many of the fastest by prediction.
    pub fastest: usize,
    /// Of every kernel this many points, the fastest by prediction.
    pub of_each_kernel: usize,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            fastest: 20,
            of_each_kernel: 1,
        }
    }
}

/// A launch with its time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// What was launched, as a plan.
    #[serde(serialize_with = "summarised")]
    pub plan: Plan,
    /// What the model says, microseconds.
    pub predicted_us: f64,
    /// The median, microseconds.
    pub measured_us: f64,
}

impl Measured {
    /// Predicted over measured, less one.
    pub fn prediction_off_by(&self) -> f64 {
        self.predicted_us / self.measured_us - 1.0
    }
}

fn summarised<S: serde::Serializer>(plan: &Plan, serializer: S) -> Result<S::Ok, S::Error> {
    plan.summary().serialize(serializer)
}

/// Launches of one product, the fastest first, and the planner's choice among them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The plan that the model chooses.
    pub chosen: Measured,
    /// All launches that were timed, the chosen one among them.
    pub candidates: Vec<Measured>,
}

impl Comparison {
    /// How much longer the chosen launch takes than the fastest: 0 when it is the fastest.
    pub fn regret(&self) -> f64 {
        let fastest = self.candidates.first().map(|best| best.measured_us);
        fastest.map_or(0.0, |us| self.chosen.measured_us / us - 1.0)
    }
}

impl<T: Number> Matrix<T> {
    /// Times launches of `product` over this matrix, with vectors of pseudo-random numbers. Afterwards the matrix is
    /// planned with the options that it had.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for a device other than a CUDA device, whatever [`Matrix::plan`] returns, and
    /// what a launch returns.
    pub fn compare_launches(
        &mut self,
        product: Product,
        selection: Selection,
    ) -> Result<Comparison, OpError> {
        let Device::Cuda(_) = self.device() else {
            return Err(OpError::Device(DeviceError::Unsupported {
                what: "time launches",
                device: self.device().to_string(),
                why: "only a CUDA device has times to compare; name one, such as `cuda:0`",
            }));
        };
        let options = self.options;
        let compared = self.compare(product, selection, options);
        self.replan(options);
        compared
    }

    fn compare(
        &mut self,
        product: Product,
        selection: Selection,
        options: MatrixOptions,
    ) -> Result<Comparison, OpError> {
        let mut bench = Bench::new(self, product)?;
        let chosen = bench
            .time(self, f64::INFINITY)?
            .expect("nothing is hopeless beside infinity");
        let mut best = chosen.measured_us;
        let mut candidates = vec![chosen.clone()];
        for forced in self.alternatives(product, selection)? {
            self.replan(MatrixOptions { forced, ..options });
            let same = |plan: &Plan| candidates.iter().any(|held| held.plan.is_launch_of(plan));
            if self.used_plan(product)?.is_none_or(same) {
                continue;
            }
            if let Some(measured) = bench.time(self, best)? {
                best = best.min(measured.measured_us);
                candidates.push(measured);
            }
        }
        candidates.sort_by(by_time);
        Ok(Comparison { chosen, candidates })
    }

    // What to force for each launch that is to be timed.
    fn alternatives(&self, product: Product, selection: Selection) -> Result<Vec<Forced>, OpError> {
        let trials = self.launches_of(product)?;
        let mut forced: Vec<Forced> = selected(&trials, selection).map(Trial::forced).collect();
        if product == Product::Fused {
            let apart = Strategy::two_products(self.problem().is_dense());
            forced.push(Forced {
                strategy: Some(apart),
                ..Forced::default()
            });
        }
        Ok(forced)
    }
}

// The selection of launches that are sorted by prediction.
fn selected(trials: &[Trial], selection: Selection) -> impl Iterator<Item = &Trial> {
    trials.iter().enumerate().filter_map(move |(i, trial)| {
        let earlier = trials[..i].iter().filter(|t| t.kernel == trial.kernel);
        let wanted = i < selection.fastest || earlier.count() < selection.of_each_kernel;
        wanted.then_some(trial)
    })
}

fn by_time(a: &Measured, b: &Measured) -> Ordering {
    a.measured_us.total_cmp(&b.measured_us)
}

// The vectors of a product, and a clock.
struct Bench<T: Number> {
    product: Product,
    input: Buffer<T>,
    output: Buffer<T>,
    timer: Timer,
}

impl<T: Number> Bench<T> {
    fn new(matrix: &Matrix<T>, product: Product) -> Result<Self, OpError> {
        let (m, n) = (matrix.rows(), matrix.cols());
        let (from, to) = product.lengths(m, n);
        let device = matrix.device();
        Ok(Bench {
            product,
            input: device.upload(&numbers::<T>(from))?,
            output: device.zeros(to)?,
            timer: Timer::new(device)?,
        })
    }

    // The time of the matrix's plan; `None` where it cannot compare with `best`.
    fn time(&mut self, matrix: &Matrix<T>, best: f64) -> Result<Option<Measured>, OpError> {
        // The first call loads the kernel and prepares what it needs.
        self.run(matrix, 1)?;
        let single = self.run(matrix, 1)?;
        let measured_us = if single > HOPELESS * best {
            single
        } else {
            let calls = (SAMPLE_US / single).ceil().clamp(1.0, MOST_CALLS) as u32;
            self.median(matrix, calls)?
        };
        let plan = matrix.used_plan(self.product)?.cloned();
        Ok(plan.map(|plan| Measured {
            predicted_us: plan.predicted_us().unwrap_or(f64::NAN),
            measured_us,
            plan,
        }))
    }

    fn median(&mut self, matrix: &Matrix<T>, calls: u32) -> Result<f64, OpError> {
        let mut samples = [0.0; SAMPLES];
        for sample in &mut samples {
            *sample = self.run(matrix, calls)?;
        }
        samples.sort_by(f64::total_cmp);
        Ok(samples[SAMPLES / 2])
    }

    // Microseconds of one of `calls` calls in a row.
    fn run(&mut self, matrix: &Matrix<T>, calls: u32) -> Result<f64, OpError> {
        let terms = Terms::default();
        self.timer.start()?;
        for _ in 0..calls {
            match self.product {
                Product::Fused => matrix.fused(&self.input, &terms, &mut self.output)?,
                Product::Forward => matrix.forward(&self.input, &terms, &mut self.output)?,
                Product::Transposed => matrix.transposed(&self.input, &terms, &mut self.output)?,
            }
        }
        Ok(self.timer.stop()? / f64::from(calls))
    }
}

// Numbers in [−½, ½) from a multiplicative hash: zeros would be added for nothing.
fn numbers<T: Number>(len: usize) -> Vec<T> {
    let number = |i: usize| {
        let hash = (i as u32).wrapping_add(1).wrapping_mul(2_654_435_761);
        <T as Element>::from_f64(f64::from(hash) / 4_294_967_296.0 - 0.5)
    };
    (0..len).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Features;
    use crate::plan::fused::{Candidate, Planner, Precision, Problem};
    use crate::plan::limits::DeviceLimits;

    fn trials() -> Vec<Trial> {
        let limits = DeviceLimits::known("h200").expect("a listed device");
        let kernels = Candidate::of_the_source(Precision::F32);
        let problem = Problem::sparse(4_000_000, 1_000, 80_000_000, Precision::F32);
        let planner = Planner::new(&limits, &kernels);
        planner
            .launches(&problem, Product::Fused)
            .expect("launches")
    }

    #[test]
    fn the_quickest_are_selected_and_some_of_every_kernel() {
        let trials = trials();
        let count = |fastest, of_each_kernel| {
            let selection = Selection {
                fastest,
                of_each_kernel,
            };
            selected(&trials, selection).count()
        };
        assert_eq!(count(7, 0), 7);
        let kernels = ["sparse_shared", "sparse_global"];
        let named = |t: &Trial| kernels.contains(&&*t.kernel);
        assert!(trials.iter().all(named), "{trials:?}");
        assert_eq!(count(0, 1), kernels.len());
        assert_eq!(count(usize::MAX, 0), trials.len());
    }

    #[test]
    fn the_cpu_has_no_launches_to_compare() {
        let x = Features::Dense(ndarray::Array2::<f32>::zeros((3, 2)));
        let mut matrix = Matrix::new(&Device::cpu(), x).expect("a matrix");
        let error = matrix
            .compare_launches(Product::Fused, Selection::default())
            .expect_err("no GPU");
        assert!(error.to_string().contains("cuda:0"), "{error}");
    }
}
