"""Linear and generalised linear models.

Each class is scikit-learn's of the same name with another ``fit``. Parameters that choose an algorithm (``solver``,
``selection``, ``precompute``, ``copy_X``, ``n_jobs``, ``random_state``) are accepted and change nothing: the minimum is
the same. Where a parameter changes the objective to one that warpfuse does not offer, such as ``positive=True``,
scikit-learn fits, and a ``FallbackWarning`` says why.
"""

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse, special
from sklearn import linear_model as _peer
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ._accelerated import Accelerated, ClassifierPrediction, RegressorPrediction
from ._dataset import Dataset
from ._fit import Problem, Solution, tolerance, warn_unless_converged
from ._sklearn import checked_weights, class_weighted, fit_context

__all__ = [
    "ElasticNet",
    "GammaRegressor",
    "GeneralizedLinearRegressor",
    "Lasso",
    "LinearRegression",
    "LogisticRegression",
    "PoissonRegressor",
    "Ridge",
    "TweedieRegressor",
]


class _LeastSquares(Accelerated, RegressorPrediction):
    """Fits of one target or several."""

    def _solve_targets(
        self, name: str, per_target: list[dict[str, Any]], X: Any, y: Any, weights: Any, starts: Any = None
    ) -> list[Solution]:
        targets = y.reshape(len(y), -1).T
        problem = Problem(X, len(targets))
        starts = starts or [None] * len(targets)
        triples = zip(per_target, targets, starts, strict=True)
        solutions = [problem.solve(name, params, t, weights, start) for params, t, start in triples]
        self._set_coefficients(solutions, y.ndim)
        warn_unless_converged(self, *solutions)
        return solutions

    def _set_coefficients(self, solutions: list[Solution], ndim: int) -> None:
        coef = np.vstack([s.coef for s in solutions])
        intercept = np.concatenate([s.intercept for s in solutions])
        self.coef_ = coef if ndim == 2 else coef[0]
        if not self.fit_intercept:
            self.intercept_ = 0.0
        else:
            self.intercept_ = intercept if ndim == 2 else intercept[0]


class LinearRegression(_LeastSquares, _peer.LinearRegression):
    """Ordinary least squares: :class:`sklearn.linear_model.LinearRegression` by warpfuse.

    Parameters and attributes are scikit-learn's, but for ``rank_`` and ``singular_``, which only a singular value
    decomposition of X gives. Of linearly dependent columns a solution near zero is taken.

    See Also
    --------
    Ridge : with an l2 penalty.

    Examples
    --------
    >>> from warpfuse import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.coef_.round(6), model.intercept_.round(6)
    (array([2.]), np.float64(1.0))
    """

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        return "positive coefficients are not offered" if self.positive else None

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LinearRegression":
        """Fit to X of shape (n_samples, n_features) and y of (n_samples,) or (n_samples, n_targets).

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset`
        y : array-like
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        if self._falls_back(X, y, sample_weight):
            return super().fit(X, y, sample_weight)
        X, y = self._validated(X, y, multi_output=True, y_numeric=True)
        params = {
            "alpha": 0.0,
            # scikit-learn's method is direct: all digits that iterations give.
            "tol": tolerance(min(getattr(self, "tol", 1e-6), 1e-8), X.dtype),
            "max_iter": 1000,
            "fit_intercept": self.fit_intercept,
        }
        count = y.shape[1] if y.ndim == 2 else 1
        self._solve_targets("ridge", [params] * count, X, y, checked_weights(sample_weight, X))
        return self


class Ridge(_LeastSquares, _peer.Ridge):
    """Least squares with an l2 penalty: :class:`sklearn.linear_model.Ridge` by warpfuse.

    Parameters and attributes are scikit-learn's. ``solver`` is accepted and changes nothing; ``solver_`` is the one
    that was asked for, and ``"sparse_cg"`` for ``"auto"``.

    Examples
    --------
    >>> from warpfuse import Ridge
    >>> Ridge(alpha=2.0).fit([[0.0], [1.0], [2.0]], [0.0, 2.0, 4.0]).coef_.round(6)
    array([1.])
    """

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if self.positive:
            return "positive coefficients are not offered"
        if self.solver == "lbfgs":
            return "solver='lbfgs' is for positive coefficients"
        if sparse.issparse(X) and self.fit_intercept and self.solver not in ("auto", "lsqr", "sag", "sparse_cg"):
            return f"scikit-learn refuses sparse X with an intercept and solver={self.solver!r}"
        return None

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Ridge":
        """Fit to X of shape (n_samples, n_features) and y of (n_samples,) or (n_samples, n_targets).

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset`
        y : array-like
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        if self._falls_back(X, y, sample_weight):
            return super().fit(X, y, sample_weight)
        X, y = self._validated(X, y, multi_output=True, y_numeric=True)
        count = y.shape[1] if y.ndim == 2 else 1
        alphas = np.asarray(self.alpha, dtype=np.float64).ravel()
        if alphas.size not in (1, count):
            raise ValueError(
                f"Number of targets and number of penalties do not correspond: {alphas.size} != {count}"
            )
        alphas = np.broadcast_to(alphas, count)
        common = {
            "tol": tolerance(self.tol, X.dtype),
            "max_iter": self.max_iter or 1000,
            "fit_intercept": self.fit_intercept,
        }
        per_target = [{**common, "alpha": float(alpha)} for alpha in alphas]
        solutions = self._solve_targets("ridge", per_target, X, y, checked_weights(sample_weight, X))
        if count == 1:
            self.coef_ = np.atleast_2d(self.coef_)[0]
        self.n_iter_ = np.array([s.n_iter for s in solutions], dtype=np.int32)
        self.solver_ = "sparse_cg" if self.solver == "auto" else self.solver
        return self


class _CoordinateDescent(_LeastSquares):
    """What Lasso and ElasticNet share."""

    _not_converged = "Objective did not converge. You might want to increase the number of iterations"

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if not isinstance(self.precompute, bool):
            return "a Gram matrix of one's own is for coordinate descent"
        return "positive coefficients are not offered" if self.positive else None

    def _fit_penalised(self, X: Any, y: Any, sample_weight: Any) -> None:
        if self.alpha == 0:
            warnings.warn(
                "With alpha=0, this algorithm does not converge well. You are advised to use the LinearRegression"
                " estimator",
                stacklevel=3,
            )
        X, y = self._validated(X, y, multi_output=True, y_numeric=True)
        if np.isscalar(sample_weight):
            sample_weight = None
        weights = checked_weights(sample_weight, X)
        params = {
            "alpha": self.alpha,
            "l1_ratio": self.l1_ratio,
            "tol": tolerance(self.tol, X.dtype),
            "max_iter": self.max_iter,
            "fit_intercept": self.fit_intercept,
        }
        count = y.shape[1] if y.ndim == 2 else 1
        name = "lasso" if self.l1_ratio == 1 else "elastic_net"
        solutions = self._solve_targets(name, [params] * count, X, y, weights, self._starts(X, count))
        self.n_iter_ = [s.n_iter for s in solutions]
        gaps = np.array([self._gap(X, t, s, weights) for t, s in zip(y.reshape(len(y), -1).T, solutions, strict=True)])
        self.dual_gap_ = gaps
        if count == 1:
            self.n_iter_, self.dual_gap_ = self.n_iter_[0], gaps[0]
            self.coef_ = np.atleast_2d(self.coef_)[0]

    def _starts(self, X: Any, count: int) -> list[Any] | None:
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        coef, intercept = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        if coef.shape != (count, X.shape[1]):
            return None
        intercept = np.broadcast_to(intercept, count)
        return list(zip(coef, intercept, strict=True))

    def _gap(self, X: Any, target: Any, solution: Solution, weights: Any) -> float:
        """The duality gap over the number of samples, as scikit-learn has it."""
        coef = solution.coef[0].astype(np.float64)
        v = np.ones(len(target)) if weights is None else weights * (len(target) / weights.sum())
        predicted = X.decision(coef[None], solution.intercept).ravel() if isinstance(X, Dataset) else X @ coef
        if not isinstance(X, Dataset):
            predicted = predicted + float(solution.intercept[0])
        residual = np.asarray(target, np.float64) - predicted
        weighted = np.ascontiguousarray(v * residual)
        correlation = X._native.transposed(weighted) if isinstance(X, Dataset) else X.T @ weighted
        centred = target - np.average(target, weights=weights) if self.fit_intercept else target
        l1 = self.alpha * self.l1_ratio * len(target)
        l2 = self.alpha * (1.0 - self.l1_ratio) * len(target)
        bound = np.abs(correlation - l2 * coef).max(initial=0.0)
        scale = l1 / bound if bound > l1 else 1.0
        square = weighted @ residual
        gap = 0.5 * square * (1.0 + scale**2) + l1 * np.abs(coef).sum() - scale * (weighted @ centred)
        return float((gap + 0.5 * l2 * (1.0 + scale**2) * (coef @ coef)) / len(target))


class ElasticNet(_CoordinateDescent, _peer.ElasticNet):
    """Least squares with l1 and l2 penalties: :class:`sklearn.linear_model.ElasticNet` by warpfuse.

    Parameters and attributes are scikit-learn's. X with 64-bit indices is taken, which scikit-learn's refuses.

    Examples
    --------
    >>> from warpfuse import ElasticNet
    >>> model = ElasticNet(alpha=0.1, l1_ratio=0.2).fit([[0.0], [1.0], [2.0]], [0.0, 2.0, 4.0])
    >>> model.coef_.round(4)
    array([1.7589])
    """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> "ElasticNet":
        """Fit to X of shape (n_samples, n_features) and y of (n_samples,) or (n_samples, n_targets).

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset`
        y : array-like
        sample_weight : float or array-like of shape (n_samples,), default=None
        check_input : bool, default=True
            Without its checks scikit-learn fits.

        Returns
        -------
        self : object
        """
        if self._falls_back(X, y, sample_weight, unchecked=not check_input):
            return super().fit(X, y, sample_weight, check_input)
        self._fit_penalised(X, y, sample_weight)
        return self


class Lasso(_CoordinateDescent, _peer.Lasso):
    """Least squares with an l1 penalty: :class:`sklearn.linear_model.Lasso` by warpfuse.

    Parameters and attributes are scikit-learn's. X with 64-bit indices is taken, which scikit-learn's refuses.

    Examples
    --------
    >>> from warpfuse import Lasso
    >>> X = [[0.0, 1.0], [1.0, -1.0], [2.0, 1.0], [3.0, -1.0]]
    >>> Lasso(alpha=0.5).fit(X, [0.0, 2.0, 4.0, 6.0]).coef_.round(4)
    array([1.6, 0. ])
    """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> "Lasso":
        """Fit to X of shape (n_samples, n_features) and y of (n_samples,) or (n_samples, n_targets).

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset`
        y : array-like
        sample_weight : float or array-like of shape (n_samples,), default=None
        check_input : bool, default=True
            Without its checks scikit-learn fits.

        Returns
        -------
        self : object
        """
        if self._falls_back(X, y, sample_weight, unchecked=not check_input):
            return super().fit(X, y, sample_weight, check_input)
        self._fit_penalised(X, y, sample_weight)
        return self


def _penalty_of(estimator: Any) -> tuple[str | None, float, float]:
    """Penalty, C and l1 ratio of a LogisticRegression, in the words of before and after scikit-learn 1.8."""
    penalty, ratio, C = estimator.penalty, estimator.l1_ratio, estimator.C
    if penalty == "deprecated":
        if ratio is None:
            warnings.warn(
                "'l1_ratio=None' was deprecated in version 1.8 and will trigger an error in 1.10. Use 0<=l1_ratio<=1"
                " instead.",
                FutureWarning,
                stacklevel=3,
            )
        ratio = ratio or 0.0
        penalty = {0: "l2", 1: "l1"}.get(ratio, "elasticnet") if C != np.inf else None
        return penalty, float(C), float(ratio)
    if penalty is None:
        return None, np.inf, 0.0
    return penalty, float(C), {"l2": 0.0, "l1": 1.0}.get(penalty, ratio if ratio is not None else 0.0)


class LogisticRegression(Accelerated, ClassifierPrediction, _peer.LogisticRegression):
    """Logistic regression, binary and multinomial: :class:`sklearn.linear_model.LogisticRegression` by warpfuse.

    Parameters and attributes are scikit-learn's. Every penalty goes with every ``solver``, since the solver changes
    nothing, but for ``"liblinear"`` with an intercept, which penalises that and is left to scikit-learn.

    Examples
    --------
    >>> from warpfuse import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> model = LogisticRegression(C=10.0).fit(X, y)
    >>> model.predict([[0.5], [2.5]])
    array(['no', 'yes'], dtype='<U3')
    """

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if self.dual:
            return "dual=True is a method of liblinear"
        if self.solver == "liblinear":
            return "solver='liblinear' penalises the intercept and splits classes"
        if self.max_iter == 0:
            return "max_iter=0 fits nothing"
        if self.penalty not in ("deprecated", "l2"):
            return None
        return None

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LogisticRegression":
        """Fit to X of shape (n_samples, n_features) and the classes y of (n_samples,).

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset`
        y : array-like
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        if self._falls_back(X, y, sample_weight):
            return super().fit(X, y, sample_weight)
        C, ratio = self._checked_penalty()
        X, y = self._validated(X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data contains only one class:"
                f" {self.classes_[0]!r}"
            )
        weights = checked_weights(sample_weight, X)
        weights = class_weighted(self.class_weight, self.classes_, y, codes, weights)
        params = {
            "C": C,
            "l1_ratio": ratio,
            "tol": tolerance(self.tol, X.dtype),
            "max_iter": self.max_iter,
            "fit_intercept": self.fit_intercept,
        }
        start = self._start(X) if self.warm_start else None
        found = Problem(X).solve("logistic_regression", params, codes, weights, start)
        self.coef_, self.intercept_ = _centred(found, C) if len(self.classes_) > 2 else (found.coef, found.intercept)
        self.n_iter_ = np.array([found.n_iter], dtype=np.int32)
        warn_unless_converged(self, found)
        return self

    def _checked_penalty(self) -> tuple[float, float]:
        """C and the l1 ratio, with scikit-learn's complaints about combinations."""
        from sklearn.linear_model._logistic import _check_solver

        penalty, C, ratio = _penalty_of(self)
        _check_solver(self.solver, penalty, self.dual)
        self._warn_of_old_words(penalty)
        if penalty == "elasticnet" and self.l1_ratio is None:
            raise ValueError("l1_ratio must be specified when penalty is elasticnet.")
        return C, ratio

    def _warn_of_old_words(self, penalty: str | None) -> None:
        deprecates = _peer.LogisticRegression().penalty == "deprecated"
        if deprecates and self.penalty != "deprecated":
            warnings.warn(
                "'penalty' was deprecated in version 1.8 and will be removed in 1.10. To avoid this warning, leave"
                " 'penalty' set to its default value and use 'l1_ratio' or 'C' instead. Use l1_ratio=0 instead of"
                " penalty='l2', l1_ratio=1 instead of penalty='l1', l1_ratio set to a float between 0 and 1 instead"
                " of penalty='elasticnet', and C=np.inf instead of penalty=None.",
                FutureWarning,
                stacklevel=4,
            )
        if deprecates and self.n_jobs is not None:
            warnings.warn(
                "'n_jobs' has no effect since 1.8 and will be removed in 1.10. You provided"
                f" 'n_jobs={self.n_jobs}', please leave it unspecified.",
                FutureWarning,
                stacklevel=4,
            )
        if penalty != "elasticnet" and self.l1_ratio is not None and 0 < self.l1_ratio < 1:
            warnings.warn(
                f"l1_ratio parameter is only used when penalty is 'elasticnet'. Got (penalty={penalty})",
                stacklevel=4,
            )
        if (self.penalty == "l2" and self.l1_ratio not in (0, None)) or (
            self.penalty == "l1" and deprecates and self.l1_ratio != 1
        ):
            warnings.warn(
                f"Inconsistent values: penalty={self.penalty} with l1_ratio={self.l1_ratio}. penalty is deprecated."
                " Please use l1_ratio only.",
                stacklevel=4,
            )
        if self.penalty is None and self.C != 1.0:
            warnings.warn("Setting penalty=None will ignore the C and l1_ratio parameters", stacklevel=4)

    def _start(self, X: Any) -> tuple[Any, Any] | None:
        coef = getattr(self, "coef_", None)
        rows = 1 if len(self.classes_) == 2 else len(self.classes_)
        if coef is None or coef.shape != (rows, X.shape[1]):
            return None
        return coef, self.intercept_


def _centred(found: Solution, C: float) -> tuple[Any, Any]:
    """Of the numbers that give the same probabilities those that add up to 0 over the classes, as scikit-learn has them.

    An l2 penalty centres the coefficients by itself; an l1 penalty has one minimum, too, and must not be touched.
    """
    intercept = found.intercept - found.intercept.mean()
    return (found.coef - found.coef.mean(axis=0) if np.isinf(C) else found.coef), intercept


class _Glm(Accelerated, RegressorPrediction):
    """What scikit-learn's generalised linear models share."""

    _family: str

    def _family_params(self) -> dict[str, Any]:
        return {"family": self._family, "link": "log"}

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        return None if isinstance(self.solver, str) else "solvers of one's own are scikit-learn's"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to X of shape (n_samples, n_features) and y of (n_samples,).

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset`
        y : array-like
        sample_weight : array-like of shape (n_samples,), default=None
            For counts with exposure: fit ``y / exposure`` with the exposure as weights.

        Returns
        -------
        self : object
        """
        if self._falls_back(X, y, sample_weight):
            return super().fit(X, y, sample_weight)
        X, y = self._validated(X, y, y_numeric=True, multi_output=False)
        y = np.ascontiguousarray(y, dtype=X.dtype)
        weights = checked_weights(sample_weight, X)
        self._base_loss = self._get_loss()
        if not self._base_loss.in_y_true_range(y):
            raise ValueError(
                "Some value(s) of y are out of the valid range of the loss"
                f" {self._base_loss.__class__.__name__!r}."
            )
        params = {
            **self._family_params(),
            "alpha": float(self.alpha),
            "l1_ratio": 0.0,
            "tol": tolerance(self.tol, X.dtype),
            "max_iter": self.max_iter,
            "fit_intercept": self.fit_intercept,
            "solver": "newton-cg",
        }
        start = None
        if self.warm_start and hasattr(self, "coef_"):
            start = (self.coef_, self.intercept_)
        found = Problem(X).solve("glm", params, y, weights, start)
        self.coef_, self.n_iter_ = found.coef[0], found.n_iter
        self.intercept_ = found.intercept[0] if self.fit_intercept else 0.0
        warn_unless_converged(self, found)
        return self

    def _linear_predictor(self, X: Any) -> Any:
        found = self._product(X)
        return super()._linear_predictor(X) if found is None else found.ravel()


class PoissonRegressor(_Glm, _peer.PoissonRegressor):
    """Counts, with a log link: :class:`sklearn.linear_model.PoissonRegressor` by warpfuse.

    Parameters and attributes are scikit-learn's; ``solver`` changes nothing.

    Examples
    --------
    >>> from warpfuse import PoissonRegressor
    >>> model = PoissonRegressor(alpha=0.0).fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 2.0, 4.0, 8.0])
    >>> model.coef_.round(4)
    array([0.6931])
    """

    _family = "poisson"


class GammaRegressor(_Glm, _peer.GammaRegressor):
    """Positive targets of variance mean², with a log link: :class:`sklearn.linear_model.GammaRegressor` by warpfuse.

    Parameters and attributes are scikit-learn's; ``solver`` changes nothing.

    Examples
    --------
    >>> from warpfuse import GammaRegressor
    >>> model = GammaRegressor(alpha=0.0).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> model.coef_.round(4)
    array([0.6931])
    """

    _family = "gamma"


class TweedieRegressor(_Glm, _peer.TweedieRegressor):
    """Targets of variance mean^power: :class:`sklearn.linear_model.TweedieRegressor` by warpfuse.

    Parameters and attributes are scikit-learn's; ``solver`` changes nothing. Powers below 0 are scikit-learn's.

    Examples
    --------
    >>> from warpfuse import TweedieRegressor
    >>> model = TweedieRegressor(power=1.5, alpha=0.0).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> model.coef_.round(4)
    array([0.6931])
    """

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if self.power < 0:
            return "powers below 0 are not offered"
        return super()._refusal(X, y, sample_weight)

    def _family_params(self) -> dict[str, Any]:
        link = self.link
        if link == "auto":
            link = "identity" if self.power <= 0 else "log"
        return {"family": "tweedie", "power": float(self.power), "link": link}


_LINKS = {
    "identity": lambda t: t,
    "logit": special.expit,
    "probit": special.ndtr,
    "cloglog": lambda t: -np.expm1(-np.exp(t)),
    "log": np.exp,
    "inverse": lambda t: 1.0 / t,
    "sqrt": lambda t: t * t,
}
_POWERS = {"gaussian": 0.0, "poisson": 1.0, "gamma": 2.0, "inverse_gaussian": 3.0}


class GeneralizedLinearRegressor(Accelerated, RegressorMixin, BaseEstimator):
    """A generalised linear model of any family and link, with l1 and l2 penalties.

    Minimises ``sum(w * d(y, mu)) / (2 * sum(w)) + alpha * (l1_ratio * |coef|_1 + (1 - l1_ratio) / 2 * |coef|^2)`` with
    the unit deviance d of the family and ``link(mu) = X @ coef + intercept``; the intercept is not penalised. With
    ``alpha=0`` the estimates are those of statsmodels' ``GLM``.

    Parameters
    ----------
    family : {"gaussian", "binomial", "poisson", "gamma", "inverse_gaussian", "tweedie"}, default="gaussian"
    link : {"auto", "identity", "logit", "probit", "cloglog", "log", "inverse", "sqrt", "power"}, default="auto"
        "auto" is identity for "gaussian", logit for "binomial" and log for the others.
    power : float, default=1.5
        Of the variance of family="tweedie": 0, or at least 1.
    link_power : float, default=1.0
        The exponent of link="power".
    alpha : float, default=1.0
    l1_ratio : float, default=0.0
    fit_intercept : bool, default=True
    solver : {"newton-cg", "lbfgs"}, default="newton-cg"
        "lbfgs" only without an l1 penalty.
    max_iter : int, default=100
    tol : float, default=1e-4
    warm_start : bool, default=False

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from warpfuse import GeneralizedLinearRegressor
    >>> model = GeneralizedLinearRegressor(family="poisson", link="sqrt", alpha=0.0)
    >>> model.fit([[0.0], [1.0], [2.0]], [1.0, 4.0, 9.0]).predict([[3.0]]).round(4)
    array([16.])
    """

    _parameter_constraints: dict = {
        "family": [StrOptions({*_POWERS, "binomial", "tweedie"})],
        "link": [StrOptions({"auto", "power", *_LINKS})],
        "power": [Interval(Real, None, None, closed="neither")],
        "link_power": [Interval(Real, None, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"newton-cg", "lbfgs"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        family: str = "gaussian",
        link: str = "auto",
        *,
        power: float = 1.5,
        link_power: float = 1.0,
        alpha: float = 1.0,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        solver: str = "newton-cg",
        max_iter: int = 100,
        tol: float = 1e-4,
        warm_start: bool = False,
    ) -> None:
        self.family = family
        self.link = link
        self.power = power
        self.link_power = link_power
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "GeneralizedLinearRegressor":
        """Fit to X of shape (n_samples, n_features) and y of (n_samples,).

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset`
        y : array-like
            As the family allows: from 0 to 1 for "binomial", at least 0 for "poisson", above 0 for "gamma".
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        self._falls_back(X, y, sample_weight)
        X, y = self._validated(X, y, y_numeric=True)
        params = {
            "family": self.family,
            "link": self.link,
            "power": float(self.power),
            "link_power": float(self.link_power),
            "alpha": float(self.alpha),
            "l1_ratio": float(self.l1_ratio),
            "tol": tolerance(self.tol, X.dtype),
            "max_iter": self.max_iter,
            "fit_intercept": self.fit_intercept,
            "solver": self.solver,
        }
        start = (self.coef_, self.intercept_) if self.warm_start and hasattr(self, "coef_") else None
        found = Problem(X).solve("glm", params, y, checked_weights(sample_weight, X), start)
        self.coef_, self.n_iter_ = found.coef[0], found.n_iter
        self.intercept_ = found.intercept[0] if self.fit_intercept else 0.0
        warn_unless_converged(self, found)
        return self

    def predict(self, X: Any) -> Any:
        """The means, of shape (n_samples,)."""
        check_is_fitted(self)
        if isinstance(X, Dataset):
            t = X.decision(self.coef_[None], np.atleast_1d(self.intercept_)).ravel()
        else:
            X = validate_data(
                self, X, accept_sparse=["csr", "csc", "coo"], dtype=[np.float64, np.float32], reset=False
            )
            t = X @ self.coef_ + self.intercept_
        return self._mean(t)

    def _mean(self, t: Any) -> Any:
        link = self.link
        if link == "power":
            return np.power(t, 1.0 / self.link_power)
        if link == "auto":
            gaussian = self.family == "gaussian" or (self.family == "tweedie" and self.power == 0)
            link = "identity" if gaussian else "logit" if self.family == "binomial" else "log"
        return _LINKS[link](t)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the share of the deviance that is explained: R² for family="gaussian"."""
        mu, y = self.predict(X), np.asarray(y, dtype=np.float64)
        mean = np.full_like(mu, np.average(y, weights=sample_weight))
        of_model, of_mean = (self._deviance(y, m, sample_weight) for m in (mu, mean))
        return float(1.0 - of_model / of_mean)

    def _deviance(self, y: Any, mu: Any, weights: Any) -> float:
        from sklearn.metrics import mean_tweedie_deviance

        if self.family == "binomial":
            unit = special.xlogy(y, y / mu) + special.xlogy(1 - y, (1 - y) / (1 - mu))
            return float(np.average(2 * unit, weights=weights))
        power = self.power if self.family == "tweedie" else _POWERS[self.family]
        return float(mean_tweedie_deviance(y, mu, sample_weight=weights, power=power))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.positive_only = self.family in ("gamma", "inverse_gaussian", "poisson", "binomial")
        return tags
