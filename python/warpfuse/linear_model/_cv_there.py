"""Searches for penalties over an X that lies on a GPU: rows are held out by a weight of 0, X is read where it lies."""

from typing import Any

import numpy as np

from .. import _report
from .._dataset import Dataset
from .._lent import namespace_of, to_host
from .._there import attributes_on_host
from ..model_selection import path_scores
from ._least_squares import Ridge
from ._logistic import LogisticRegression

__all__ = ["logistic_refusal", "logistic_there", "ridge_refusal", "ridge_there"]


def ridge_refusal(estimator: Any, y: Any, sample_weight: Any) -> str | None:
    """Why a RidgeCV is not fitted to X on a GPU."""
    if sample_weight is not None:
        return "a search with sample weights takes X on the host"
    if estimator.scoring is not None:
        return "a search by other scores than R² takes X on the host"
    return "a search for several targets takes X on the host" if len(y.shape) != 1 else None


def ridge_there(estimator: Any, X: Any, y: Any) -> Any:
    """Fits a RidgeCV whose ``cv`` is given."""
    _report.served(type(estimator).__name__)
    attributes_on_host(estimator)
    data, y = Dataset(X), to_host(y)
    alphas = np.ravel(np.asarray(estimator.alphas, np.float64))
    ridge = Ridge(fit_intercept=estimator.fit_intercept)
    means = path_scores(ridge, data, y, param_name="alpha", param_range=alphas, cv=estimator.cv).mean(axis=1)
    best = int(np.argmax(means))
    estimator.alpha_, estimator.best_score_ = alphas[best], means[best]
    return _with_coefficients(estimator, ridge.set_params(alpha=float(alphas[best])).fit(data, y), X)


def logistic_refusal(estimator: Any, sample_weight: Any) -> str | None:
    """Why a LogisticRegressionCV is not fitted to X on a GPU."""
    if sample_weight is not None or estimator.class_weight is not None:
        return "a search with weights takes X on the host"
    if estimator.scoring not in ("accuracy", "warn", None):
        return "a search by other scores than accuracy takes X on the host"
    return None if estimator.refit else "refit=False takes X on the host"


def logistic_there(estimator: Any, X: Any, y: Any) -> Any:
    """Fits a LogisticRegressionCV; ``coefs_paths_`` is not kept, and other attributes are those of
    ``use_legacy_attributes=False``."""
    _report.served(type(estimator).__name__)
    attributes_on_host(estimator)
    data, y = Dataset(X), to_host(y)
    Cs, ratios = _penalties(estimator)
    given = {"fit_intercept": estimator.fit_intercept, "tol": estimator.tol, "max_iter": estimator.max_iter}
    # The one solver that scikit-learn lets have any penalty; which it is changes nothing.
    models = [LogisticRegression(l1_ratio=float(ratio), solver="saga", **given) for ratio in ratios]
    scores = [path_scores(m, data, y, param_name="C", param_range=Cs, cv=estimator.cv) for m in models]
    means = np.array([of_ratio.mean(axis=1) for of_ratio in scores])
    ratio, C = np.unravel_index(int(np.argmax(means)), means.shape)
    fitted = models[ratio].set_params(C=float(Cs[C])).fit(data, y)
    estimator.Cs_, estimator.l1_ratios_ = Cs, ratios
    estimator.C_, estimator.l1_ratio_ = float(Cs[C]), float(ratios[ratio])
    estimator.scores_ = np.stack([of_ratio.T for of_ratio in scores], axis=1)
    estimator.classes_, estimator.n_iter_ = fitted.classes_, fitted.n_iter_
    return _with_coefficients(estimator, fitted, X)


def _penalties(estimator: Any) -> tuple[Any, Any]:
    """Cs and l1 ratios to compare."""
    Cs = estimator.Cs
    Cs = np.logspace(-4, 4, int(Cs)) if np.ndim(Cs) == 0 else np.asarray(Cs, np.float64)
    ratios = estimator.l1_ratios
    if ratios is None or isinstance(ratios, str):
        ratios = {"l1": (1.0,)}.get(estimator.penalty, (0.0,))
    return Cs, np.asarray(ratios, np.float64)


def _with_coefficients(estimator: Any, fitted: Any, X: Any) -> Any:
    """Coefficients of the best fit, where X lies."""
    namespace = namespace_of(X)
    estimator.n_features_in_ = fitted.n_features_in_
    estimator.coef_ = namespace.asarray(fitted.coef_)
    intercept = fitted.intercept_
    estimator.intercept_ = namespace.asarray(intercept) if isinstance(intercept, np.ndarray) else intercept
    return estimator
