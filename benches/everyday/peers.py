"""What the peers fit, and the objectives in f64 as the estimators document them."""

import numpy as np
from scipy import sparse
from scipy.special import log_ndtr, logsumexp, xlogy
from sklearn import linear_model, svm
from sklearn.kernel_ridge import KernelRidge


def objective(estimator, params, x, y, coef, intercept):
    """The objective of `coef` (one list per predictor) and `intercept`."""
    coef, intercept = np.atleast_2d(coef), np.atleast_1d(intercept)
    if estimator == "kernel":
        return kernel_residual(params, x, y, coef[0])
    t = x @ coef.T + intercept
    squares, norm = float((coef**2).sum()), float(np.abs(coef).sum())
    m = len(y)
    if estimator in ("linreg", "ridge"):
        return float(((y - t[:, 0]) ** 2).sum()) + params.get("alpha", 0.0) * squares
    if estimator in ("lasso", "enet"):
        alpha, rho = params["alpha"], params.get("l1_ratio", 1.0)
        loss = float(((y - t[:, 0]) ** 2).sum()) / (2 * m)
        return loss + alpha * rho * norm + 0.5 * alpha * (1 - rho) * squares
    if estimator == "logreg":
        return log_loss(t, y) + penalty(params, squares, norm) / (params["c"] * m)
    if estimator == "glm":
        return half_deviance(params, t[:, 0], y) / m + 0.5 * params["alpha"] * squares
    if estimator == "svr":
        outside = np.maximum(0, np.abs(y - t[:, 0]) - params["epsilon"])
        return 0.5 * (squares + float(intercept[0] ** 2)) + params["c"] * float((outside**2).sum())
    total = 0.5 * (squares + float((intercept**2).sum()))
    names = np.unique(y)
    for column in range(t.shape[1]):
        sign = np.where(y == names[column if len(names) > 2 else 1], 1.0, -1.0)
        total += params["c"] * float((np.maximum(0, 1 - sign * t[:, column]) ** 2).sum())
    return total


def penalty(params, squares, norm):
    kind = params["penalty"]
    rho = {"none": 0.0, "l2": 0.0, "l1": 1.0}.get(kind, params.get("l1_ratio", 0.0))
    return 0.0 if kind == "none" else rho * norm + 0.5 * (1 - rho) * squares


def log_loss(t, y):
    names, codes = np.unique(y, return_inverse=True)
    if len(names) == 2 and t.shape[1] == 1:
        return float(np.logaddexp(0, np.where(codes == 1, -t[:, 0], t[:, 0])).mean())
    return float((logsumexp(t, axis=1) - t[np.arange(len(y)), codes]).mean())


def half_deviance(params, t, y):
    family, link = params["family"], params.get("link", "")
    if family == "binomial":
        return -float(np.where(y == 1, log_ndtr(t), log_ndtr(-t)).sum())
    mu = t**2 if link == "sqrt" else np.exp(np.minimum(t, 700))
    if link == "sqrt" and (t <= 0).any():
        return np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        if family == "poisson":
            return float((xlogy(y, y / mu) - y + mu).sum())
        if family == "gamma":
            return float((np.log(mu / y) + y / mu - 1).sum())
        p = params["power"]
        parts = y ** (2 - p) / ((1 - p) * (2 - p)) - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p)
        return float(parts.sum())


def kernel_residual(params, x, y, dual):
    """½aᵀ(K + λI)a − aᵀy, shifted by ½·yᵀy, so that it is positive."""
    square = (x**2).sum(1)
    k = np.exp(-params["gamma"] * np.maximum(0, square[:, None] + square - 2 * x @ x.T))
    return float(0.5 * dual @ (k @ dual + params["alpha"] * dual) - dual @ y + 0.5 * y @ y)


def linear(model):
    return np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)


def fits(estimator, params, x, y):
    """Name, fit, and coefficients of the fit, of every peer that can."""
    for label, make in makers(estimator, params, x, y):
        if label == "statsmodels":
            yield label, make, lambda found: (found.params[1:], found.params[:1])
        elif estimator == "kernel":
            yield label, (lambda make=make: make().fit(x, y)), lambda model: (model.dual_coef_, [0.0])
        else:
            yield label, (lambda make=make: make().fit(x, y)), linear


def makers(estimator, params, x, y):
    alpha, rho, c = params.get("alpha"), params.get("l1_ratio"), params.get("c")
    if estimator == "linreg":
        yield "LinearRegression", lambda: linear_model.LinearRegression()
    elif estimator == "ridge":
        for solver in ["auto", "cholesky", "svd", "lsqr", "sparse_cg"]:
            if not sparse.issparse(x) or solver not in ("svd", "cholesky"):
                yield f"Ridge {solver}", lambda solver=solver: linear_model.Ridge(alpha=alpha, solver=solver, tol=1e-8)
    elif estimator in ("lasso", "enet"):
        for tol in [1e-4, 1e-6, 1e-8]:
            make = lambda tol=tol: linear_model.ElasticNet(alpha=alpha, l1_ratio=rho or 1.0, tol=tol, max_iter=100_000)
            yield f"coordinate descent {tol:g}", make
    elif estimator == "logreg":
        yield from logistic(params, len(np.unique(y)))
    elif estimator == "glm":
        yield from glm(params, x, y)
    elif estimator == "svc":
        for tol in [1e-4, 1e-6, 1e-8]:
            for dual in [False, True]:
                make = lambda tol=tol, dual=dual: svm.LinearSVC(C=c, tol=tol, dual=dual, max_iter=20_000)
                yield f"liblinear {'dual' if dual else 'primal'} {tol:g}", make
    elif estimator == "svr":
        for tol in [1e-4, 1e-6, 1e-8]:
            loss = "squared_epsilon_insensitive"
            make = lambda tol=tol: svm.LinearSVR(
                C=c, epsilon=params["epsilon"], loss=loss, dual=False, tol=tol, max_iter=20_000
            )
            yield f"liblinear primal {tol:g}", make
    elif estimator == "kernel":
        yield "KernelRidge", lambda: KernelRidge(alpha=alpha, kernel="rbf", gamma=params["gamma"])


def logistic(params, classes):
    kind, c = params["penalty"], params["c"]
    rho = {"none": 0.0, "l2": 0.0, "l1": 1.0}.get(kind, params.get("l1_ratio"))
    strength = np.inf if kind == "none" else c
    solvers = ["lbfgs", "newton-cholesky", "newton-cg"] if rho == 0.0 else ["saga"]
    if kind == "l1" and classes == 2:
        solvers.append("liblinear")
    for solver in solvers:
        for tol in [1e-4] if solver == "saga" else [1e-4, 1e-6, 1e-8]:
            more = dict(intercept_scaling=1000.0) if solver == "liblinear" else {}
            iterations = 300 if solver == "saga" else 10_000
            make = lambda solver=solver, tol=tol, more=more, iterations=iterations: linear_model.LogisticRegression(
                C=strength, l1_ratio=rho, solver=solver, tol=tol, max_iter=iterations, **more
            )
            yield f"{solver} {tol:g}", make


def glm(params, x, y):
    family, link, alpha = params["family"], params.get("link", ""), params["alpha"]
    classes = {"poisson": linear_model.PoissonRegressor, "gamma": linear_model.GammaRegressor}
    if link in ("", "log") and family != "binomial":
        for solver in ["lbfgs", "newton-cholesky"]:
            for tol in [1e-4, 1e-6, 1e-8]:
                more = dict(alpha=alpha, solver=solver, tol=tol, max_iter=10_000)
                if family == "tweedie":
                    make = lambda more=more: linear_model.TweedieRegressor(power=params["power"], link="log", **more)
                else:
                    make = lambda more=more: classes[family](**more)
                yield f"{solver} {tol:g}", make
    if alpha == 0.0:
        import statsmodels.api as sm

        families = sm.families
        kinds = {
            ("poisson", ""): lambda: families.Poisson(),
            ("poisson", "sqrt"): lambda: families.Poisson(families.links.Sqrt()),
            ("binomial", "probit"): lambda: families.Binomial(families.links.Probit()),
        }
        kind = kinds.get((family, link))
        if kind:
            yield "statsmodels", lambda: sm.GLM(y, sm.add_constant(x), family=kind()).fit()
