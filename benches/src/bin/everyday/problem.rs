//! One problem: its data, and the estimator that it asks for.

use std::path::Path;

use anyhow::{Context, Result, bail};
use ndarray::Array2;
use serde::Deserialize;
use warpfuse::learning::{
    ElasticNet, Estimator, Family, Glm, KernelRidge, Lasso, LinearRegression, LinearSvc, LinearSvr,
    Link, LogisticRegression, Penalty, Ridge,
};
use warpfuse::matrix::{Features, csr_from_parts};
use warpfuse::ops::KernelFunction;

/// A row of `problems.json`; the files are raw little-endian f64, u64 (`indptr`) and u32 (`indices`).
#[derive(Deserialize)]
pub(crate) struct Problem {
    pub(crate) name: String,
    estimator: String,
    rows: usize,
    cols: usize,
    /// Row-major values, or the entries of a sparse X.
    x: String,
    y: String,
    indptr: Option<String>,
    indices: Option<String>,
    #[serde(default)]
    alpha: f64,
    #[serde(default)]
    l1_ratio: f64,
    #[serde(default)]
    c: f64,
    #[serde(default)]
    epsilon: f64,
    #[serde(default)]
    gamma: f64,
    #[serde(default)]
    power: f64,
    #[serde(default)]
    penalty: String,
    #[serde(default)]
    family: String,
    #[serde(default)]
    link: String,
    tol: Option<f64>,
}

/// What solves a problem.
pub(crate) enum Task {
    Linear(Estimator),
    Kernel(KernelRidge),
}

impl Problem {
    pub(crate) fn features(&self, folder: &Path) -> Result<Features<f64>> {
        let values: Vec<f64> = read(folder, &self.x)?;
        let (Some(indptr), Some(indices)) = (&self.indptr, &self.indices) else {
            let shape = (self.rows, self.cols);
            return Ok(Features::Dense(Array2::from_shape_vec(shape, values)?));
        };
        let (indptr, indices) = (read::<u64>(folder, indptr)?, read::<u32>(folder, indices)?);
        let x = csr_from_parts((self.rows, self.cols), indptr, indices, values)?;
        Ok(Features::Sparse(x))
    }

    pub(crate) fn targets(&self, folder: &Path) -> Result<Vec<f64>> {
        read(folder, &self.y)
    }

    pub(crate) fn task(&self) -> Result<Task> {
        let estimator: Estimator = match self.estimator.as_str() {
            "linreg" => LinearRegression::params().into(),
            "ridge" => Ridge::params().alpha(self.alpha).into(),
            "lasso" => Lasso::params().alpha(self.alpha).into(),
            "enet" => ElasticNet::params()
                .alpha(self.alpha)
                .l1_ratio(self.l1_ratio)
                .into(),
            "logreg" => LogisticRegression::params()
                .c(self.c)
                .penalty(self.penalty()?)
                .into(),
            "glm" => self.glm()?,
            "svc" => LinearSvc::params().c(self.c).into(),
            "svr" => LinearSvr::params().c(self.c).epsilon(self.epsilon).into(),
            "kernel" => {
                let length = (0.5 / self.gamma).sqrt();
                let params = KernelRidge::params().kernel(KernelFunction::Gaussian, length);
                return Ok(Task::Kernel(params.alpha(self.alpha)));
            }
            other => bail!("there is no estimator {other}"),
        };
        Ok(Task::Linear(match self.tol {
            Some(tol) => estimator.tolerance(tol),
            None => estimator,
        }))
    }

    fn penalty(&self) -> Result<Penalty> {
        Ok(match self.penalty.as_str() {
            "none" => Penalty::None,
            "l1" => Penalty::L1,
            "l2" => Penalty::L2,
            "elasticnet" => Penalty::ElasticNet {
                l1_ratio: self.l1_ratio,
            },
            other => bail!("there is no penalty {other}"),
        })
    }

    fn glm(&self) -> Result<Estimator> {
        let family = match self.family.as_str() {
            "gaussian" => Family::Gaussian,
            "poisson" => Family::Poisson,
            "gamma" => Family::Gamma,
            "binomial" => Family::Binomial,
            "inverse_gaussian" => Family::InverseGaussian,
            "tweedie" => Family::Tweedie { power: self.power },
            other => bail!("there is no family {other}"),
        };
        let params = Glm::params().family(family).alpha(self.alpha);
        Ok(match self.link.as_str() {
            "" => params.into(),
            "log" => params.link(Link::Log).into(),
            "sqrt" => params.link(Link::Sqrt).into(),
            "identity" => params.link(Link::Identity).into(),
            "probit" => params.link(Link::Probit).into(),
            other => bail!("there is no link {other}"),
        })
    }
}

fn read<T: bytemuck::Pod>(folder: &Path, name: &str) -> Result<Vec<T>> {
    let path = folder.join(name);
    let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let values = bytes.chunks_exact(size_of::<T>());
    Ok(values.map(bytemuck::pod_read_unaligned).collect())
}
