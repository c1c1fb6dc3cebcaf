//! PageRank.

use std::sync::Arc;

use super::cg::Progress;
use super::checkpoint::{Checkpoint, Identity};
use super::evaluations::steps;
use super::identity::{digest, with_checkpoint_of};
use super::spectral::{
    Clock, Course, SpectralReport, advance, check_edges, check_tolerance, download, iterate,
    normalise_sum, spectral_fits, spectral_model, upload,
};
use super::{FitError, Operator};
use crate::device::{Buffer, Device};
use crate::matrix::{Element, Features, Storage};
use crate::ops::{Matrix, MatrixOptions, Number, OpError, Preparation, Product, Terms, vector};

/// PageRank: how often a surfer visits each node who follows a random edge with probability d, and else jumps
/// to a node drawn from the personalisation z.
///
/// X is a graph's adjacency matrix: entry (i, j) is the weight of the edge from i to j. With D the sums of the
/// rows, iterates `x ← d·Xᵀ(D⁻¹·x) + (1 − d)·z + d·(Σ x over dangling nodes)·u`, one pass over X per step,
/// until √m·‖xₖ − xₖ₋₁‖₂ ≤ tol, which bounds the change in the 1-norm. Nodes without edges ("dangling") jump
/// to u. x keeps the sum 1, so that the dangling share is what the product lost, and no list of dangling nodes
/// is needed. The result is as far from the limit as d / (1 − d) times the last change, at most.
///
/// | parameter | default | networkx `pagerank` |
/// |---|---|---|
/// | `damping` (d) | 0.85 | `alpha=0.85` |
/// | `personalisation` (z) | all nodes alike | `personalization=None` |
/// | `dangling` (u) | z | `dangling=None` |
/// | `tolerance` | 1e-6, of the change in the 1-norm | `tol=1e-6`, for each node |
/// | `max_iter` | 100 | `max_iter=100` |
///
/// Source: Brin and Page 1998; Gleich 2015, "PageRank beyond the Web". Same definitions as networkx's
/// `pagerank`.
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::learning::PageRank;
/// use warpfuse::matrix::Features;
///
/// let ring = Features::Dense(array![[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]);
/// let model = PageRank::params().damping(0.9).fit(&Device::cpu(), ring)?;
/// assert!(model.scores().iter().all(|score| (score - 1.0 / 3.0).abs() < 1e-6));
/// # Ok::<(), warpfuse::learning::FitError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PageRank {
    damping: f64,
    tolerance: f64,
    max_iter: usize,
    personalisation: Option<Vec<f64>>,
    dangling: Dangling,
    matrix: MatrixOptions,
}

/// Where the surfer goes from a node without edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dangling {
    /// To a node drawn from the personalisation, as in networkx.
    #[default]
    Personalised,
    /// To any node, all alike.
    Uniform,
}

/// A score per node.
#[derive(Debug, Clone, PartialEq)]
pub struct PageRankModel {
    scores: Vec<f64>,
    report: SpectralReport,
}

/// Vectors of a solve.
struct Surfer<T: Number> {
    /// D⁻¹, 0 for dangling nodes.
    inverse_degrees: Buffer<T>,
    /// z, and the start.
    personalisation: Buffer<T>,
    /// u, where it is not z.
    dangling: Option<Buffer<T>>,
    ones: Buffer<T>,
}

spectral_fits! {
    PageRank -> PageRankModel, watched "after each step";
    /// Scores the nodes of the graph `x` (m × m) on `device`.
    ///
    /// # Errors
    /// [`FitError::NotSquare`], [`FitError::Edge`] for edges that are negative or not finite,
    /// [`FitError::Parameter`] for parameters out of their range, and when the device fails. Not converging is
    /// no error: see [`PageRankModel::report`].
}

impl PageRank {
    /// d = 0.85, tolerance 1e-6, at most 100 steps, no personalisation.
    pub fn params() -> Self {
        PageRank {
            damping: 0.85,
            tolerance: 1e-6,
            max_iter: 100,
            personalisation: None,
            dangling: Dangling::default(),
            matrix: MatrixOptions::default(),
        }
    }

    /// Sets d, 0 ≤ d < 1: the chance to follow an edge.
    pub fn damping(self, damping: f64) -> Self {
        Self { damping, ..self }
    }

    /// Sets the change in the 1-norm at which to stop; the scores add up to 1.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Sets the most steps.
    pub fn max_iter(self, max_iter: usize) -> Self {
        Self { max_iter, ..self }
    }

    /// Sets z, one weight per node, none negative; it is scaled to a sum of 1.
    pub fn personalisation(self, weights: Vec<f64>) -> Self {
        let personalisation = Some(weights);
        Self {
            personalisation,
            ..self
        }
    }

    /// Sets where dangling nodes lead.
    pub fn dangling(self, dangling: Dangling) -> Self {
        Self { dangling, ..self }
    }

    /// Sets how products are planned on a GPU.
    pub fn matrix_options(self, matrix: MatrixOptions) -> Self {
        Self { matrix, ..self }
    }

    fn facts(&self, identity: &mut Identity) {
        identity.fact("method", "PageRank");
        identity.fact("damping", self.damping);
        identity.fact("tolerance", self.tolerance);
        identity.fact("max_iter", self.max_iter);
        identity.fact("dangling", format_args!("{:?}", self.dangling));
        identity.fact("sums", format_args!("{:?}", self.matrix.summation));
        if let Some(weights) = &self.personalisation {
            let weights = digest(weights.iter().copied());
            identity.fact("a digest of the personalisation", weights);
        }
    }

    fn run<T: Number>(
        &self,
        device: &Device,
        graph: Arc<Features<T>>,
        watch: impl FnMut(Progress),
    ) -> Result<PageRankModel, FitError> {
        let mut clock = Clock::start();
        let nodes = self.check(device, &graph)?;
        let surfer = self.surfer(device, &graph, nodes)?;
        // A step shrinks the distance to the limit by d at least.
        let evaluations = steps(self.tolerance, -self.damping.ln()).min(self.max_iter as u64);
        let to_come = Preparation::ForProduct {
            product: Product::Transposed,
            evaluations,
        };
        let x = Matrix::prepared(device, graph, self.matrix, to_come)?;
        clock.transferred();
        let (scores, course) = self.iterate(&x, &surfer, watch)?;
        let mut scores = download(&scores)?;
        normalise_sum(&mut scores);
        Ok(PageRankModel {
            scores,
            report: clock.report(&x, course),
        })
    }

    /// The number of nodes.
    fn check<T: Number>(&self, device: &Device, graph: &Features<T>) -> Result<usize, FitError> {
        check_tolerance(self.tolerance)?;
        let (rows, cols) = (check_edges(device, graph)?, graph.cols());
        if rows != cols {
            return Err(FitError::NotSquare { rows, cols });
        }
        if !(0.0..1.0).contains(&self.damping) {
            return Err(FitError::Parameter {
                name: "damping",
                expected: "at least 0 and below 1",
                found: self.damping,
            });
        }
        match &self.personalisation {
            Some(weights) => check_personalisation(weights, rows).map(|()| rows),
            None => Ok(rows),
        }
    }

    fn surfer<T: Number>(
        &self,
        device: &Device,
        graph: &Features<T>,
        nodes: usize,
    ) -> Result<Surfer<T>, FitError> {
        let mut inverse = inverse_degrees(graph);
        if let Some(group) = device.group() {
            inverse = group.all_gather(&inverse).map_err(OpError::from)?;
        }
        let uniform = vec![1.0 / nodes as f64; nodes];
        let mut personalisation = self.personalisation.clone().unwrap_or(uniform.clone());
        normalise_sum(&mut personalisation);
        let jumps_elsewhere = self.dangling == Dangling::Uniform && self.personalisation.is_some();
        Ok(Surfer {
            inverse_degrees: upload(device, &inverse)?,
            personalisation: upload(device, &personalisation)?,
            dangling: match jumps_elsewhere {
                true => Some(upload(device, &uniform)?),
                false => None,
            },
            ones: upload(device, &vec![1.0; nodes])?,
        })
    }

    fn iterate<T: Number>(
        &self,
        x: &impl Operator<T>,
        surfer: &Surfer<T>,
        watch: impl FnMut(Progress),
    ) -> Result<(Buffer<T>, Course), FitError> {
        let mut scores = surfer.personalisation.try_clone()?;
        let mut next = x.device().zeros(x.rows())?;
        let of_norms = (x.rows() as f64).sqrt();
        let until = (self.tolerance, self.max_iter);
        let course = iterate(("page rank", &mut scores), until, watch, |scores| {
            self.step(x, surfer, scores, &mut next)?;
            Ok(of_norms * advance(scores, &mut next)?)
        })?;
        Ok((scores, course))
    }

    /// One step of the surfer. What the product lost is the share of jumps: 1 − d by choice, the rest from
    /// dangling nodes.
    fn step<T: Number>(
        &self,
        x: &impl Operator<T>,
        surfer: &Surfer<T>,
        scores: &Buffer<T>,
        next: &mut Buffer<T>,
    ) -> Result<(), FitError> {
        let narrow = <T as Element>::from_f64;
        let terms = Terms {
            alpha: narrow(self.damping),
            weights: Some(&surfer.inverse_degrees),
            ..Terms::default()
        };
        x.transposed(scores, &terms, next)?;
        let lost = 1.0 - vector::dot(next, &surfer.ones)?;
        let by_choice = match surfer.dangling {
            Some(_) => 1.0 - self.damping,
            None => lost,
        };
        vector::axpby(
            narrow(by_choice),
            &surfer.personalisation,
            narrow(1.0),
            next,
        )?;
        if let Some(dangling) = &surfer.dangling {
            vector::axpby(
                narrow((lost - by_choice).max(0.0)),
                dangling,
                narrow(1.0),
                next,
            )?;
        }
        Ok(())
    }
}

impl PageRankModel {
    /// m scores that add up to 1.
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }
}

spectral_model!(PageRankModel, "Steps.");

fn check_personalisation(weights: &[f64], nodes: usize) -> Result<(), FitError> {
    let parameter = |expected, found| FitError::Parameter {
        name: "personalisation",
        expected,
        found,
    };
    if weights.len() != nodes {
        let expected = "one weight per node";
        return Err(parameter(expected, weights.len() as f64));
    }
    let valid = |weight: &&f64| weight.is_finite() && **weight >= 0.0;
    if let Some(wrong) = weights.iter().find(|weight| !valid(weight)) {
        return Err(parameter("finite and not negative", *wrong));
    }
    let sum: f64 = weights.iter().sum();
    if sum > 0.0 && sum.is_finite() {
        return Ok(());
    }
    Err(parameter("of a positive and finite sum", sum))
}

/// 1 / Σⱼ Xᵢⱼ per row, 0 for rows that sum to 0.
fn inverse_degrees<T: Number>(graph: &Features<T>) -> Vec<f64> {
    let sum = |values: &mut dyn Iterator<Item = &T>| -> f64 {
        values.map(|value| Element::to_f64(*value)).sum()
    };
    let inverse = |degree: f64| if degree > 0.0 { 1.0 / degree } else { 0.0 };
    match graph.storage() {
        Storage::Sparse(x) => x
            .outer_iterator()
            .map(|row| inverse(sum(&mut row.data().iter())))
            .collect(),
        Storage::Dense(x) => x
            .rows()
            .into_iter()
            .map(|row| inverse(sum(&mut row.iter())))
            .collect(),
    }
}
