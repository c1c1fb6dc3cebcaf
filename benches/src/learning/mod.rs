//! Time to objective: binary logistic regression by the estimator, and by the same solver on the products of other
//! libraries.
//!
//! A fit's time is that from its first evaluation to the iteration at which its objective is within 10⁻⁶ of the least
//! that any fit has found. What an inner iteration of conjugate gradients costs by the clock, less what the device spends
//! on it (module `step`), is the time outside the kernels.

use anyhow::{Result, ensure};
use warpfuse::io::synth::NamedShape;
use warpfuse::learning::{
    Estimator, FitOptions, Iteration, Labels, LogisticRegression, NewtonOptions, ResidentDataset,
    Targets, newton_cg,
};
use warpfuse::matrix::Element;
use warpfuse::ops::objective::{ObjectiveOut, ObjectiveSums};
use warpfuse::ops::{MatrixOptions, Number};
use warpfuse::plan::fused::{Maker, Product};

use crate::case::{Case, SEED};
use crate::gpu::Gpu;
use crate::peers::{self, Inputs};
use crate::record::{Measured, Recorder};
use crate::sampling::{Sampler, Times};
use crate::shape::{Lengths, Shape};

mod peer;
mod problem;
mod scikit;
mod step;

use peer::PeerObjective;
use problem::Problem;
use step::Step;

/// C of every fit.
const C: f64 = 1.0;
/// How near to the least objective a fit has to come.
const NEAR: f64 = 1e-6;
/// The gradient at which fits end: beyond what is asked of the objective.
const TOLERANCE: f64 = 1e-6;
const MAX_ITER: usize = 60;
/// Evaluations that pay for a form of a small X, whoever makes it.
const MANY: u64 = 10_000;
/// Microseconds beyond which a library's fit is not waited for.
const LONGEST_US: f64 = 3e7;

/// Records the fits of all shapes.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    for name in [
        NamedShape::Rcv1,
        NamedShape::Higgs,
        NamedShape::Url,
        NamedShape::Kddb,
    ] {
        record_shape::<f32>(gpu, recorder, (name, Announced::OneFit))?;
    }
    record_shape::<f32>(gpu, recorder, (NamedShape::Rcv1, Announced::ManyFits))
}

/// What X is stored for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Announced {
    /// The evaluations of a fit.
    OneFit,
    /// [`MANY`], as of the fits of a path, by a form that the device makes.
    ManyFits,
}

fn record_shape<T: Number>(
    gpu: &Gpu,
    recorder: &Recorder,
    (name, announced): (NamedShape, Announced),
) -> Result<()> {
    let case = Case {
        family: "learning",
        work: work(name, announced),
        shape: shape(name),
        dtype: T::DTYPE.into(),
        seed: SEED,
    };
    recorder.measure(&case, || {
        let problem = Problem::<T>::new(name)?;
        let repeats = repeats(name);
        let race = Race {
            problem,
            announced,
            repeats,
        };
        let mut measured = race.measure(gpu, &case.shape)?;
        if announced == Announced::OneFit {
            scikit::add(&race, name, &mut measured);
        }
        Ok(measured)
    })
}

fn work(name: NamedShape, announced: Announced) -> &'static str {
    match name {
        NamedShape::Rcv1 if announced == Announced::ManyFits => "logreg_rcv1_of_many",
        NamedShape::Rcv1 => "logreg_rcv1",
        NamedShape::Higgs => "logreg_higgs",
        NamedShape::Url => "logreg_url",
        _ => "logreg_kddb",
    }
}

/// As [`NamedShape::spec`] draws it, but for the spread of the rows' lengths.
fn shape(name: NamedShape) -> Shape {
    let drawn = |rows, cols, per_row, zipf_percent| Shape::Drawn {
        rows,
        cols,
        per_row,
        lengths: Lengths::LogNormal,
        zipf_percent,
    };
    match name {
        NamedShape::Rcv1 => drawn(20_242, 47_236, 74, 100),
        NamedShape::Url => drawn(2_396_130, 3_231_961, 116, 120),
        NamedShape::Kddb => drawn(19_264_097, 29_890_095, 29, 110),
        _ => Shape::Dense {
            rows: 11_000_000,
            cols: 28,
        },
    }
}

/// How often a fit is repeated: large ones take seconds.
fn repeats(name: NamedShape) -> usize {
    match name {
        NamedShape::Rcv1 | NamedShape::Higgs => 5,
        _ => 1,
    }
}

/// What every fit is of.
fn params(max_iter: usize) -> LogisticRegression {
    LogisticRegression::params()
        .c(C)
        .fit_intercept(false)
        .tolerance(TOLERANCE)
        .max_iter(max_iter)
}

/// Fits of one problem.
struct Race<T: Number> {
    problem: Problem<T>,
    announced: Announced,
    repeats: usize,
}

impl<T: Number> Race<T> {
    fn measure(&self, gpu: &Gpu, shape: &Shape) -> Result<Measured> {
        let targets = self.problem.targets.iter();
        let labels = Labels::Numbers(targets.map(|b| Element::to_f64(*b)).collect());
        let resident = self.place(gpu, &labels)?;
        let stored = resident.matrix().problem().stored;
        // The first one loads kernels.
        self.fit(&resident, &labels, 1)?;
        let fits = (0..self.repeats)
            .map(|_| self.fit(&resident, &labels, MAX_ITER))
            .collect::<Result<Vec<_>>>()?;
        let inverse = self.problem.inverse_diagonal(self.l2());
        let product_us = self.product_us(gpu, &resident)?;
        let mut step = Step::new(gpu, resident.matrix(), &inverse, self.l2())?;
        let (device_us, clock_us) = (step.device_us()?.median_us, step.clock_us()?.median_us);
        drop(step);
        drop(resident);
        let (others, products) = self.others(gpu, &inverse, &fits[0]);
        let mut measured = race(&fits, &others, shape.bytes::<T>(4))?;
        measured.variant = format!("{}, {stored}", measured.variant);
        let details = &mut measured.details;
        details.insert("product_us", product_us);
        details.extend(products);
        details.insert("inner_device_us", device_us);
        details.insert("inner_clock_us", clock_us);
        details.insert("inner_outside_us", clock_us - device_us);
        Ok(measured)
    }

    /// X in the form that pays.
    fn place(&self, gpu: &Gpu, labels: &Labels) -> Result<ResidentDataset<T>> {
        let features = self.problem.features.clone();
        Ok(match self.announced {
            Announced::OneFit => {
                let estimator = Estimator::from(params(MAX_ITER));
                estimator.place(&gpu.device, features, Targets::Labels(labels))?
            }
            Announced::ManyFits => {
                let options = MatrixOptions {
                    maker: Some(Maker::Device),
                    ..MatrixOptions::default()
                };
                ResidentDataset::for_evaluations(&gpu.device, features, options, MANY)?
            }
        })
    }

    fn l2(&self) -> f64 {
        1.0 / (C * self.problem.features.rows() as f64)
    }

    fn fit(
        &self,
        resident: &ResidentDataset<T>,
        labels: &Labels,
        max_iter: usize,
    ) -> Result<Vec<Iteration>> {
        let model = params(max_iter).fit_on(resident, labels, FitOptions::default())?;
        Ok(model.report().history.clone())
    }

    /// Microseconds of the Hessian's product alone.
    fn product_us(&self, gpu: &Gpu, resident: &ResidentDataset<T>) -> Result<f64> {
        let (device, matrix) = (&gpu.device, resident.matrix());
        let ones = |len: usize, value: f64| vec![<T as Element>::from_f64(value); len];
        let curvature = device.upload(&ones(matrix.rows(), 0.25))?;
        let s = device.upload(&ones(matrix.cols(), 0.01))?;
        let mut sums = device.zeros(ObjectiveSums::LEN)?;
        let mut product = device.zeros(matrix.cols())?;
        let times = gpu.sampler.time(device, || {
            let out = ObjectiveOut::new(&mut sums, &mut product);
            step::multiply((matrix, &curvature), &s, out)
        })?;
        Ok(times.median_us)
    }

    /// The same solver on the products of the libraries that there are, in as many iterations as `fit`, and what both
    /// products of each took.
    fn others(
        &self,
        gpu: &Gpu,
        inverse: &[T],
        fit: &[Iteration],
    ) -> (Vec<Peer>, Vec<(&'static str, f64)>) {
        let (mut all, mut products) = (Vec::new(), Vec::new());
        for method in peers::Method::ALL {
            match self.other(gpu, method, inverse, fit) {
                Ok(Some((us, fit))) => {
                    products.push((product_name(method), us));
                    all.extend(fit.map(|fit| (method.name(), fit)));
                }
                Ok(None) => {}
                Err(error) => eprintln!("{} is left out: {error:#}", method.name()),
            }
        }
        (all, products)
    }

    /// Both products, and the fastest of some fits unless one would take too long; `None` where the library does not
    /// multiply in this way.
    fn other(
        &self,
        gpu: &Gpu,
        method: peers::Method,
        inverse: &[T],
        fit: &[Iteration],
    ) -> Result<Option<(f64, Option<Vec<Iteration>>)>> {
        let Problem { features, targets } = &self.problem;
        let n = features.cols();
        let (y, p) = (vec![T::default(); n], vec![T::default(); features.rows()]);
        let inputs = Inputs { y: &y, p: &p };
        let Some(mut product) = gpu.libraries().peer(&gpu.device, features, inputs) else {
            return Ok(None);
        };
        if !product.methods(Product::Fused).contains(&method) {
            return Ok(None);
        }
        let both = || product.run(method, Product::Fused);
        let both = Sampler::brief().time(&gpu.device, both)?.median_us;
        let products: usize = fit.iter().map(|i| i.inner + 1).sum();
        if both * products as f64 > LONGEST_US {
            eprintln!("{} has no fit: {both:.0} us a product", method.name());
            return Ok(Some((both, None)));
        }
        let mut objective = PeerObjective::new(gpu, (product, method), targets, n, self.l2())?;
        let mut best: Option<Vec<Iteration>> = None;
        for _ in 0..self.repeats {
            let mut history = Vec::new();
            let options = NewtonOptions {
                tolerance: TOLERANCE,
                max_iter: fit.len(),
                inverse_diagonal: Some(gpu.device.upload(inverse)?),
            };
            let start = gpu.device.zeros(n)?;
            let found = newton_cg(&mut objective, start, options, &mut |i| history.push(i));
            objective.told(found)?;
            let ended = |fit: &[Iteration]| fit.last().map_or(f64::INFINITY, |i| i.seconds);
            if best
                .as_ref()
                .is_none_or(|best| ended(&history) < ended(best))
            {
                best = Some(history);
            }
        }
        Ok(Some((both, best)))
    }
}

/// A library's name, and its fit.
type Peer = (&'static str, Vec<Iteration>);

/// What a library's two products are called in records.
fn product_name(method: peers::Method) -> &'static str {
    match method {
        peers::Method::Gemv => "cublas_products_us",
        peers::Method::Spmv => "cusparse_products_us",
        peers::Method::SpmvStored => "cusparse_stored_transpose_products_us",
    }
}

/// Times to the least objective of all fits; who does not come near it is left out, unless it is the first.
fn race(fits: &[Vec<Iteration>], others: &[Peer], bytes: usize) -> Result<Measured> {
    let all = fits.iter().chain(others.iter().map(|(_, fit)| fit));
    let least = all
        .flat_map(|fit| fit.iter().map(|i| i.objective))
        .fold(f64::INFINITY, f64::min);
    let us = |fit: &Vec<Iteration>| time_to(fit, least).map(|seconds| 1e6 * seconds);
    let times = fits.iter().map(us).collect::<Result<_>>()?;
    let variant = format!("newton_cg, {} outer iterations", fits[0].len());
    let mut measured = Measured::new(variant, Times::of(times), bytes);
    for (name, fit) in others {
        match us(fit) {
            Ok(us) => drop(measured.peers.insert((*name).to_owned(), us)),
            Err(error) => eprintln!("{name} is left out: {error:#}"),
        }
    }
    let details = &mut measured.details;
    details.insert("objective", least);
    details.insert("outer", fits[0].len() as f64);
    details.insert("inner", fits[0].iter().map(|i| i.inner as f64).sum());
    Ok(measured)
}

/// Seconds until the objective is near enough to the least.
fn time_to(fit: &[Iteration], least: f64) -> Result<f64> {
    let near = |iteration: &&Iteration| iteration.objective - least <= NEAR * least;
    let found = fit.iter().find(near);
    ensure!(
        found.is_some(),
        "ended at {:?} above {least}",
        fit.last().map(|i| i.objective - least)
    );
    Ok(found.map_or(f64::NAN, |iteration| iteration.seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_counts_until_it_is_near_and_a_slow_peer_does_not_stop_the_others() {
        let at = |objective, seconds| Iteration {
            objective,
            gradient_ratio: 1.0,
            inner: 2,
            seconds,
            validation: None,
        };
        let ours = vec![vec![at(2.0, 1.0), at(1.0 + 1e-7, 2.0), at(1.0, 3.0)]];
        let far = ("far", vec![at(1.5, 0.5)]);
        let near = ("near", vec![at(1.0, 4.0)]);
        let measured = race(&ours, &[far, near], 8).expect("our fit came near");
        assert_eq!(measured.times.median_us, 2e6);
        assert_eq!(
            measured.peers.into_iter().collect::<Vec<_>>(),
            [("near".to_owned(), 4e6)]
        );
    }
}
