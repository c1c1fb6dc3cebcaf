//! Time to objective: binary logistic regression by the estimator, and by the same solver on the products of other
//! libraries.
//!
//! A fit's time is that from its first evaluation to the iteration at which its objective is within 10⁻⁶ of the least
//! that any fit has found. What an inner iteration of conjugate gradients costs is the slope of the outer iterations'
//! times over their numbers of inner ones.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use warpfuse::io::synth::NamedShape;
use warpfuse::learning::{
    Extras, Iteration, Labels, LogisticRegression, NewtonOptions, Placed, newton_cg,
};
use warpfuse::matrix::{ColumnMoments, Element, Features};
use warpfuse::ops::objective::{Intercept, ObjectiveOut, ObjectiveSums};
use warpfuse::ops::{MatrixOptions, Number};

use crate::case::{Case, SEED};
use crate::gpu::Gpu;
use crate::peers::{self, Inputs};
use crate::record::{Measured, Recorder};
use crate::sampling::Times;
use crate::shape::Shape;

mod peer;

/// C of every fit.
const C: f64 = 1.0;
/// How near to the least objective a fit has to come.
const NEAR: f64 = 1e-6;
/// The gradient at which fits end: beyond what is asked of the objective.
const TOLERANCE: f64 = 1e-6;
const MAX_ITER: usize = 60;
const FITS: usize = 3;

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
        record_shape::<f32>(gpu, recorder, name)?;
    }
    Ok(())
}

fn record_shape<T: Number>(gpu: &Gpu, recorder: &Recorder, name: NamedShape) -> Result<()> {
    let case = Case {
        family: "learning",
        work: work(name),
        shape: shape(name),
        dtype: T::DTYPE,
        seed: SEED,
    };
    recorder.measure(&case, || {
        let problem = Problem::<T>::new(name)?;
        problem.dump(name)?;
        problem.measure(gpu, &case.shape)
    })
}

fn work(name: NamedShape) -> &'static str {
    match name {
        NamedShape::Rcv1 => "logreg_rcv1",
        NamedShape::Higgs => "logreg_higgs",
        NamedShape::Url => "logreg_url",
        _ => "logreg_kddb",
    }
}

/// The mean of the rows' lengths stands for all.
fn shape(name: NamedShape) -> Shape {
    let sparse = |rows, cols, per_row| Shape::Sparse {
        rows,
        cols,
        per_row,
    };
    match name {
        NamedShape::Rcv1 => sparse(20_242, 47_236, 74),
        NamedShape::Url => sparse(2_396_130, 3_231_961, 116),
        NamedShape::Kddb => sparse(19_264_097, 29_890_095, 29),
        _ => Shape::Dense {
            rows: 11_000_000,
            cols: 28,
        },
    }
}

/// Data with the labels that a noisy linear function gives.
struct Problem<T: Number> {
    features: Arc<Features<T>>,
    /// 0 or 1.
    targets: Vec<T>,
}

impl<T: Number> Problem<T> {
    fn new(name: NamedShape) -> Result<Self> {
        let made = name.spec(1.0, SEED)?.generate::<T>()?;
        let scores = made
            .dataset
            .targets
            .context("synthetic data have targets")?;
        let mean = scores.iter().map(|b| Element::to_f64(*b)).sum::<f64>() / scores.len() as f64;
        let label = |(row, score): (usize, &T)| {
            // A tenth of the labels are the others.
            let flipped = crate::data::uniform(SEED + 40, row) < 0.1;
            let yes = (Element::to_f64(*score) > mean) != flipped;
            <T as Element>::from_f64(f64::from(u8::from(yes)))
        };
        Ok(Problem {
            targets: scores.iter().enumerate().map(label).collect(),
            features: Arc::new(made.dataset.features),
        })
    }

    /// Writes the arrays for other programs where `WARPFUSE_BENCH_DUMP` names a folder.
    fn dump(&self, name: NamedShape) -> Result<()> {
        let Some(folder) = std::env::var_os("WARPFUSE_BENCH_DUMP") else {
            return Ok(());
        };
        let folder = std::path::PathBuf::from(folder);
        let write = |what: &str, bytes: &[u8]| {
            let path = folder.join(format!("{name}.{what}"));
            std::fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))
        };
        write("targets", bytemuck::cast_slice(&self.targets))?;
        match &*self.features {
            Features::Dense(x) => {
                let values = x.as_slice().context("made row by row")?;
                write("values", bytemuck::cast_slice(values))
            }
            Features::Sparse(x) => {
                write("offsets", bytemuck::cast_slice(x.indptr().raw_storage()))?;
                write("indices", bytemuck::cast_slice(x.indices()))?;
                write("values", bytemuck::cast_slice(x.data()))
            }
        }
    }

    fn measure(&self, gpu: &Gpu, shape: &Shape) -> Result<Measured> {
        let placed = Placed::new(&gpu.device, self.features.clone(), MatrixOptions::default())?;
        let labels: Vec<f64> = self.targets.iter().map(|b| Element::to_f64(*b)).collect();
        let labels = Labels::Numbers(labels);
        let mut fits = Vec::new();
        for _ in 0..=FITS {
            fits.push(self.fit(&placed, &labels)?);
        }
        // The first one loads kernels.
        fits.remove(0);
        let product_us = self.product_us(gpu, &placed)?;
        drop(placed);
        let others = self.others(gpu);
        let all = fits.iter().chain(others.iter().map(|(_, fit)| fit));
        let least = all
            .flat_map(|fit| fit.iter().map(|i| i.objective))
            .fold(f64::INFINITY, f64::min);
        let times: Vec<f64> = fits
            .iter()
            .map(|fit| time_to(fit, least).map(|seconds| 1e6 * seconds))
            .collect::<Result<_>>()?;
        let mut measured = Measured::new(
            format!("newton_cg, {} outer iterations", fits[0].len()),
            Times::of(times),
            shape.bytes::<T>(4),
        );
        for (name, fit) in &others {
            measured
                .peers
                .insert((*name).to_owned(), 1e6 * time_to(fit, least)?);
        }
        let inner = inner_us(&fits);
        let details = &mut measured.details;
        details.insert("objective", least);
        details.insert("outer", fits[0].len() as f64);
        details.insert("inner", fits[0].iter().map(|i| i.inner as f64).sum());
        details.insert("product_us", product_us);
        if let Some(inner) = inner {
            details.insert("inner_us", inner);
            details.insert("inner_over_product_us", inner - product_us);
        }
        Ok(measured)
    }

    fn fit(&self, placed: &Placed<T>, labels: &Labels) -> Result<Vec<Iteration>> {
        let model = LogisticRegression::params()
            .c(C)
            .fit_intercept(false)
            .tolerance(TOLERANCE)
            .max_iter(MAX_ITER)
            .fit_on(placed, labels, Extras::default())?;
        Ok(model.report().history.clone())
    }

    /// Microseconds of the Hessian's product alone.
    fn product_us(&self, gpu: &Gpu, placed: &Placed<T>) -> Result<f64> {
        let (device, matrix) = (&gpu.device, placed.matrix());
        let ones = |len: usize, value: f64| vec![<T as Element>::from_f64(value); len];
        let curvature = device.upload(&ones(matrix.rows(), 0.25))?;
        let s = device.upload(&ones(matrix.cols(), 0.01))?;
        let mut sums = device.zeros(ObjectiveSums::LEN)?;
        let mut product = device.zeros(matrix.cols())?;
        let times = gpu.sampler.time(device, || {
            let out = ObjectiveOut::new(&mut sums, &mut product);
            matrix.hessian_product(&curvature, Intercept::Absent, &s, out)
        })?;
        Ok(times.median_us)
    }

    /// The same solver on the products of the libraries that there are, the best of some fits each.
    fn others(&self, gpu: &Gpu) -> Vec<(&'static str, Vec<Iteration>)> {
        let mut all = Vec::new();
        for method in peers::Method::ALL {
            match self.other(gpu, method) {
                Ok(Some(fit)) => all.push((method.name(), fit)),
                Ok(None) => {}
                Err(error) => eprintln!("{} is left out: {error:#}", method.name()),
            }
        }
        all
    }

    fn other(&self, gpu: &Gpu, method: peers::Method) -> Result<Option<Vec<Iteration>>> {
        let (m, n) = (self.features.rows(), self.features.cols());
        let zeros = |len| vec![T::default(); len];
        let (y, p) = (zeros(n), zeros(m));
        let inputs = Inputs { y: &y, p: &p };
        let libraries = gpu.libraries();
        let Some(product) = libraries.peer(&gpu.device, &self.features, inputs) else {
            return Ok(None);
        };
        if !product
            .methods(warpfuse::plan::fused::Product::Fused)
            .contains(&method)
        {
            return Ok(None);
        }
        let l2 = 1.0 / (C * m as f64);
        let mut objective = peer::PeerObjective::new(gpu, product, method, &self.targets, n, l2)?;
        let diagonal = self.inverse_diagonal(l2);
        let mut best: Option<Vec<Iteration>> = None;
        for _ in 0..FITS {
            let mut history = Vec::new();
            let options = NewtonOptions {
                tolerance: TOLERANCE,
                max_iter: MAX_ITER,
                inverse_diagonal: Some(gpu.device.upload(&diagonal)?),
            };
            let start = gpu.device.zeros(n)?;
            newton_cg(&mut objective, start, options, &mut |i| history.push(i))?;
            let seconds =
                |history: &[Iteration]| history.last().map_or(f64::INFINITY, |i| i.seconds);
            if best
                .as_ref()
                .is_none_or(|best| seconds(&history) < seconds(best))
            {
                best = Some(history);
            }
        }
        Ok(best)
    }

    /// That of the estimator: of ¼·XᵀX / m + λ.
    fn inverse_diagonal(&self, l2: f64) -> Vec<T> {
        let moments = ColumnMoments::of(&self.features);
        let rows = self.features.rows() as f64;
        let squares = moments.sum_of_squares.iter();
        squares
            .map(|square| match *square {
                0.0 => T::default(),
                square => <T as Element>::from_f64(1.0 / (0.25 * square / rows + l2)),
            })
            .collect()
    }
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

/// The slope of the outer iterations' times over their inner iterations, in microseconds.
fn inner_us(fits: &[Vec<Iteration>]) -> Option<f64> {
    let mut points = Vec::new();
    for fit in fits {
        for pair in fit.windows(2) {
            points.push((pair[1].inner as f64, pair[1].seconds - pair[0].seconds));
        }
    }
    let count = points.len() as f64;
    let mean = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let square: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    let cross: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    (square > 0.0).then(|| 1e6 * cross / square)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_that_of_the_inner_iterations() {
        let at = |inner, seconds| Iteration {
            objective: 1.0,
            gradient_ratio: 1.0,
            inner,
            seconds,
            validation: None,
        };
        let fit = vec![at(3, 1.0), at(2, 1.5), at(4, 2.2)];
        let slope = inner_us(&[fit]).expect("two points");
        assert!((slope - 1e5).abs() < 1e-6, "{slope}");
    }
}
