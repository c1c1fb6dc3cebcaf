//! A dictionary of parameters to an estimator of the library.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use warpfuse::learning::{
    ElasticNet, Estimator, Family, Glm, Huber, Lasso, LinearSvc, LinearSvr, Link,
    LogisticRegression, Penalty, Quantile, Ridge, Solver, SvmLoss,
};
use warpfuse::matrix::Dtype;

/// Parameters by name, and the precision of X. The Python side gives all that an estimator has.
struct Params<'a, 'py>(&'a Bound<'py, PyDict>, Dtype);

impl Params<'_, '_> {
    /// The library stops at a norm of the gradient relative to that at the start. scikit-learn's `tol` means something else
    /// for each of its solvers; with these factors a fit is at least as close to the minimum as scikit-learn's with the same
    /// number, and weighted fits equal those with repeated rows to 1e-7. Newton's method converges quadratically, so that the
    /// digits beyond scikit-learn's cost an iteration or two. `most_tol` is the most that `tol` is
    /// taken for, `tolerance` the library's own.
    fn tolerance(&self) -> PyResult<f64> {
        if let Some(own) = self.0.get_item("tolerance")? {
            return own.extract();
        }
        let most = match self.0.get_item("most_tol")? {
            Some(most) => most.extract()?,
            None => 1.0,
        };
        let factor = match self.1 {
            Dtype::F32 => 1e-2,
            Dtype::F64 => 1e-6,
        };
        Ok((self.number("tol")?.min(most) * factor).max(SMALLEST_TOLERANCE))
    }

    fn number(&self, name: &str) -> PyResult<f64> {
        self.required(name)?.extract()
    }

    fn count(&self, name: &str) -> PyResult<usize> {
        self.required(name)?.extract()
    }

    fn flag(&self, name: &str) -> PyResult<bool> {
        self.required(name)?.extract()
    }

    fn text(&self, name: &str) -> PyResult<String> {
        self.required(name)?.extract()
    }

    /// A flag that few estimators have.
    fn optional_flag(&self, name: &str) -> PyResult<bool> {
        match self.0.get_item(name)? {
            Some(flag) => flag.extract(),
            None => Ok(false),
        }
    }

    /// Of a support vector machine.
    fn svm_loss(&self) -> PyResult<SvmLoss> {
        Ok(match self.text("loss")?.as_str() {
            "hinge" | "epsilon_insensitive" => SvmLoss::Linear,
            _ => SvmLoss::Squared,
        })
    }

    fn required(&self, name: &str) -> PyResult<Bound<'_, PyAny>> {
        self.0
            .get_item(name)?
            .ok_or_else(|| PyValueError::new_err(format!("the parameter {name} is missing")))
    }
}

/// Below, rounding decides.
const SMALLEST_TOLERANCE: f64 = 1e-14;

/// Sets what all estimators have.
macro_rules! controlled {
    ($estimator:expr, $params:ident) => {
        $estimator
            .tolerance($params.tolerance()?)
            .max_iter($params.count("max_iter")?)
            .fit_intercept($params.flag("fit_intercept")?)
            .non_negative($params.optional_flag("positive")?)
    };
}

/// The estimator of this name, for X of this precision.
///
/// # Errors
/// `ValueError` for a name that there is not, or a parameter that is missing.
pub fn estimator(name: &str, params: &Bound<'_, PyDict>, of: Dtype) -> PyResult<Estimator> {
    let p = Params(params, of);
    Ok(match name {
        "ridge" => Estimator::Ridge(controlled!(Ridge::params(), p).alpha(p.number("alpha")?)),
        "lasso" => Estimator::Lasso(controlled!(Lasso::params(), p).alpha(p.number("alpha")?)),
        "elastic_net" => Estimator::ElasticNet(
            controlled!(ElasticNet::params(), p)
                .alpha(p.number("alpha")?)
                .l1_ratio(p.number("l1_ratio")?),
        ),
        "glm" => Estimator::Glm(glm(&p)?),
        "linear_svr" => Estimator::LinearSvr(
            controlled!(LinearSvr::params(), p)
                .c(p.number("C")?)
                .loss(p.svm_loss()?)
                .epsilon(p.number("epsilon")?)
                .intercept_scaling(p.number("intercept_scaling")?),
        ),
        "linear_svc" => Estimator::LinearSvc(
            controlled!(LinearSvc::params(), p)
                .loss(p.svm_loss()?)
                .c(p.number("C")?)
                .intercept_scaling(p.number("intercept_scaling")?),
        ),
        "huber" => Estimator::Huber(
            controlled!(Huber::params(), p)
                .alpha(p.number("alpha")?)
                .epsilon(p.number("epsilon")?),
        ),
        "quantile" => Estimator::Quantile(
            controlled!(Quantile::params(), p)
                .alpha(p.number("alpha")?)
                .quantile(p.number("quantile")?),
        ),
        "logistic_regression" => Estimator::LogisticRegression(logistic(&p)?),
        _ => {
            return Err(PyValueError::new_err(format!(
                "there is no estimator {name}"
            )));
        }
    })
}

fn logistic(p: &Params<'_, '_>) -> PyResult<LogisticRegression> {
    let c = p.number("C")?;
    let l1_ratio = p.number("l1_ratio")?;
    let penalty = match l1_ratio {
        _ if c.is_infinite() => Penalty::None,
        0.0 => Penalty::L2,
        1.0 => Penalty::L1,
        l1_ratio => Penalty::ElasticNet { l1_ratio },
    };
    Ok(controlled!(LogisticRegression::params(), p)
        .c(c)
        .penalty(penalty))
}

fn glm(p: &Params<'_, '_>) -> PyResult<Glm> {
    let solver = match p.text("solver")?.as_str() {
        "auto" => Solver::Auto,
        "lbfgs" => Solver::Lbfgs,
        "newton-cg" => Solver::NewtonCg,
        "newton-cholesky" => Solver::NewtonCholesky,
        "coordinate-descent" => Solver::CoordinateDescent,
        name => return Err(PyValueError::new_err(format!("there is no solver {name}"))),
    };
    let estimator = controlled!(Glm::params(), p)
        .family(family(p)?)
        .alpha(p.number("alpha")?)
        .l1_ratio(p.number("l1_ratio")?)
        .solver(solver);
    Ok(match link(p)? {
        Some(link) => estimator.link(link),
        None => estimator,
    })
}

fn family(p: &Params<'_, '_>) -> PyResult<Family> {
    Ok(match p.text("family")?.as_str() {
        "gaussian" => Family::Gaussian,
        "binomial" => Family::Binomial,
        "poisson" => Family::Poisson,
        "gamma" => Family::Gamma,
        "inverse_gaussian" => Family::InverseGaussian,
        "tweedie" => Family::Tweedie {
            power: p.number("power")?,
        },
        name => return Err(PyValueError::new_err(format!("there is no family {name}"))),
    })
}

fn link(p: &Params<'_, '_>) -> PyResult<Option<Link>> {
    Ok(Some(match p.text("link")?.as_str() {
        "auto" => return Ok(None),
        "identity" => Link::Identity,
        "logit" => Link::Logit,
        "probit" => Link::Probit,
        "cloglog" => Link::Cloglog,
        "log" => Link::Log,
        "inverse" => Link::Inverse,
        "sqrt" => Link::Sqrt,
        "power" => Link::Power(p.number("link_power")?),
        name => return Err(PyValueError::new_err(format!("there is no link {name}"))),
    }))
}
