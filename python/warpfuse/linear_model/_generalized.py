"""A generalised linear model of every family and link, which scikit-learn does not have."""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .._again import ANY
from .._dataset import Dataset
from .._lent import lies_on_gpu, namespace_of, to_host
from .._linear import OneTargetFit
from .._there import product_there

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


class GeneralizedLinearRegressor(OneTargetFit, RegressorMixin, BaseEstimator):
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
    solver : {"auto", "newton-cg", "lbfgs", "newton-cholesky", "coordinate-descent"}, default="auto"
        "auto" suits the size, the structure and the penalty. "lbfgs" and "newton-cholesky" only without an l1 penalty.
    max_iter : int, default=100
    tol : float, default=1e-4
    warm_start : bool, default=False
    positive : bool, default=False
        Whether coefficients may not be negative; the intercept always may.

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
        "solver": [StrOptions({"auto", "newton-cg", "lbfgs", "newton-cholesky", "coordinate-descent"})],
        "positive": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
    }

    _numbers: ClassVar[dict[str, tuple[float, float]]] = {
        **OneTargetFit._numbers,
        **dict.fromkeys(("alpha", "l1_ratio", "link_power"), ANY),
        "power": (1.0, 2.0),
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
        solver: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
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
        self.positive = positive

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        return None

    def _objective(self) -> tuple[str, dict[str, Any]]:
        return "glm", {
            "family": self.family,
            "link": self.link,
            "power": float(self.power),
            "link_power": float(self.link_power),
            "alpha": float(self.alpha),
            "l1_ratio": float(self.l1_ratio),
            "solver": self.solver,
            "positive": bool(self.positive),
        }

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None, exposure: Any = None) -> Self:
        """Fit to X of shape (n_samples, n_features) and y.

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset`
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        offset : array-like of shape (n_samples,), default=None
            Added to ``X @ coef + intercept`` before the link, as statsmodels' ``GLM(..., offset=...)``.
        exposure : array-like of shape (n_samples,), default=None
            Above 0, with link="log": the mean is proportional to it. The same as ``offset=np.log(exposure)``.

        Returns
        -------
        self : object
        """
        self._offset = self._offsets(to_host(offset), to_host(exposure))
        try:
            if self._offset is not None:
                return self._fit_checked(X, y, sample_weight)
            return super().fit(X, y, sample_weight)
        finally:
            del self._offset

    def _fit_served(self, X: Any, y: Any, weights: Any) -> None:
        self._solve_one(X, y, weights, self._own_start(), self._offset)

    def _offsets(self, offset: Any, exposure: Any) -> Any:
        """What is added to the linear predictors, or None."""
        offset, exposure = (None if of is None else np.asarray(of, np.float64) for of in (offset, exposure))
        for name, found in (("offset", offset), ("exposure", exposure)):
            if found is not None and found.ndim != 1:
                raise ValueError(f"{name} must be of shape (n_samples,), got {found.shape}")
        if exposure is None:
            return offset
        if offset is not None:
            raise ValueError("offset and exposure exclude each other: add log(exposure) to the offset")
        if self._link() != "log":
            raise ValueError(f"an exposure needs link='log', got {self._link()!r}")
        if not (exposure > 0).all():
            raise ValueError("exposures must be above 0")
        return np.log(exposure)

    def predict(self, X: Any, *, offset: Any = None, exposure: Any = None) -> Any:
        """The means, of shape (n_samples,), of rows with these offsets or exposures: 0 and 1 by default."""
        check_is_fitted(self)
        if lies_on_gpu(X):
            return self._predict_there(X, offset, exposure)
        coef, intercept = to_host(self.coef_), to_host(self.intercept_)
        if isinstance(X, Dataset):
            t = X.decision(coef[None], np.atleast_1d(intercept)).ravel()
        else:
            X = validate_data(
                self, X, accept_sparse=["csr", "csc", "coo"], dtype=[np.float64, np.float32], reset=False
            )
            t = X @ coef + intercept
        more = self._offsets(offset, exposure)
        return self._mean(t if more is None else t + more)

    def _predict_there(self, X: Any, offset: Any, exposure: Any) -> Any:
        """The means of rows on a GPU, there. Links that few libraries have cross, a number a row."""
        t, namespace = product_there(self, X).ravel(), namespace_of(X)
        more = self._offsets(to_host(offset), to_host(exposure))
        if more is not None:
            t = t + namespace.asarray(more.astype(str(t.dtype).rpartition(".")[2]))
        if self._link() in ("log", "identity"):
            return namespace.xp.exp(t) if self._link() == "log" else t
        return namespace.asarray(self._mean(to_host(t)))

    def _link(self) -> str:
        if self.link != "auto":
            return self.link
        gaussian = self.family == "gaussian" or (self.family == "tweedie" and self.power == 0)
        return "identity" if gaussian else "logit" if self.family == "binomial" else "log"

    def _mean(self, t: Any) -> Any:
        link = self._link()
        if link == "power":
            return np.power(t, 1.0 / self.link_power)
        return _LINKS[link](t)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the share of the deviance that is explained: R² for family="gaussian"."""
        mu, y, sample_weight = to_host(self.predict(X)), np.asarray(to_host(y), np.float64), to_host(sample_weight)
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
