"""Penalties chosen by cross-validation: scikit-learn's classes, whose paths are warpfuse's.

X of a fold is placed once and fitted along the whole path, each fit from the last one's coefficients. What is done
around the paths (grids, folds, scores, attributes) is scikit-learn's own code.
"""

from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn import linear_model as _peer
from sklearn.linear_model import _coordinate_descent as _of_squares
from sklearn.linear_model import _logistic as _of_logistic
from sklearn.linear_model import _ridge as _of_ridge
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, check_cv
from sklearn.utils.validation import check_array, validate_data

from .._accelerated import Accelerated, ClassifierPrediction, RegressorPrediction
from .._dataset import Dataset
from .._fit import Problem, warn_unless_converged
from .._lent import lies_on_gpu
from .._sklearn import checked_weights, class_weighted, fit_context, rebound
from .._there import attributes_on_host, score_on_host
from ._cv_there import logistic_refusal, logistic_there, ridge_refusal, ridge_there
from ._elastic_net import ElasticNet, Lasso
from ._least_squares import Ridge
from ._logistic import ProbabilityPrediction


#: Why a Dataset cannot be fitted.
_WHOLE = "folds take rows of X, which lies whole on its device; path_scores holds rows out by weights"


def _squares_path(
    X: Any,
    y: Any,
    *,
    alphas: Any,
    l1_ratio: float = 1.0,
    tol: float = 1e-4,
    max_iter: int = 1000,
    positive: bool = False,
    sample_weight: Any = None,
    X_offset: Any = None,
    **_others: Any,
) -> tuple[Any, Any, Any]:
    """Coefficients (n_features, n_alphas) of an elastic net, X placed once."""
    # A dense X has been centred and multiplied by the roots of the weights; a sparse one comes with its means.
    centres = sparse.issparse(X) and X_offset is not None and bool(np.any(X_offset))
    sample_weight = sample_weight if sparse.issparse(X) else None
    problem, start = Problem(X, len(alphas), on_cpu=positive), None
    controls = {"tol": tol, "max_iter": max_iter, "fit_intercept": centres, "positive": positive}
    solutions = []
    for alpha in alphas:
        params = {**controls, "alpha": float(alpha), "l1_ratio": float(l1_ratio)}
        found = problem.solve("elastic_net", params, y, sample_weight, start)
        start = (found.coef, found.intercept)
        solutions.append(found)
    warn_unless_converged(SimpleNamespace(tol=tol, _not_converged="Objective did not converge"), *solutions)
    return np.asarray(alphas), np.column_stack([found.coef[0] for found in solutions]), np.zeros(len(alphas))


def _validate_data(estimator: Any, *given: Any, **how: Any) -> Any:
    """scikit-learn's checks within fits of these classes, which refuse 64-bit indices for the sake of its own solvers.

    A sparse X stays in rows, from which folds are taken and which the library reads.
    """
    if "validate_separately" not in how:
        return validate_data(estimator, *given, **{**how, "accept_large_sparse": True})
    of_X, of_y = how["validate_separately"]
    of_X = {**of_X, "accept_sparse": "csr", "accept_large_sparse": True}
    return validate_data(estimator, *given, **{**how, "validate_separately": (of_X, of_y)})


def _check_rows(X: Any, **how: Any) -> Any:
    """scikit-learn's check of a fold's rows, which would turn sparse ones into columns."""
    return X if sparse.issparse(X) else check_array(X, **how)


def _named(model: type) -> type:
    """The class of the last fit: the one of this name in scikit-learn's module, where somebody has put one of ours there."""
    there = getattr(_of_squares, model.__name__)
    return there if issubclass(there, model) else model


class _SquaresCV(Accelerated, RegressorPrediction):
    """What LassoCV and ElasticNetCV share."""

    path = staticmethod(_squares_path)

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if isinstance(X, Dataset):
            return _WHOLE
        if not isinstance(self.precompute, bool | str):
            return "a Gram matrix of one's own is for coordinate descent"
        return None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit to X of shape (n_samples, n_features) and y of (n_samples,), with the best of the penalties.

        Parameters
        ----------
        X : array-like or sparse matrix
        y : array-like of shape (n_samples,)
        sample_weight : float or array-like of shape (n_samples,), default=None
        **params : dict
            Of the splitter, with metadata routing.

        Returns
        -------
        self : object
        """
        if not self._falls_back(X, y, sample_weight):
            return _squares_fit(self, X, y, sample_weight, **params)
        theirs = type(self)._peer
        self.path = theirs.path
        try:
            return super().fit(X, y, sample_weight, **params)
        finally:
            del self.path


class LassoCV(_SquaresCV, _peer.LassoCV):
    """A lasso with cross-validated penalty: :class:`sklearn.linear_model.LassoCV` by warpfuse.

    Parameters and attributes are scikit-learn's. X with 64-bit indices is taken, which scikit-learn's refuses.

    Examples
    --------
    >>> import numpy as np
    >>> from warpfuse import LassoCV
    >>> X = np.sin(np.arange(60.0)).reshape(20, 3)
    >>> model = LassoCV(cv=4).fit(X, 2 * X[:, 0] + 1)
    >>> model.coef_.round(2), model.mse_path_.shape
    (array([2., 0., 0.]), (100, 4))
    """

    _peer = _peer.LassoCV

    def _get_estimator(self) -> Any:
        return _named(Lasso)()


class ElasticNetCV(_SquaresCV, _peer.ElasticNetCV):
    """An elastic net with cross-validated penalties: :class:`sklearn.linear_model.ElasticNetCV` by warpfuse.

    Parameters and attributes are scikit-learn's. X with 64-bit indices is taken, which scikit-learn's refuses.

    Examples
    --------
    >>> import numpy as np
    >>> from warpfuse import ElasticNetCV
    >>> X = np.sin(np.arange(60.0)).reshape(20, 3)
    >>> ElasticNetCV(cv=4, l1_ratio=[0.5, 1.0]).fit(X, 2 * X[:, 0] + 1).l1_ratio_
    np.float64(1.0)
    """

    _peer = _peer.ElasticNetCV

    def _get_estimator(self) -> Any:
        return _named(ElasticNet)()


class _RidgeSearch:
    """What RidgeCV asks of a grid search: X of a fold is placed once for all penalties."""

    def __init__(self, estimator: Any, parameters: dict[str, Any], cv: Any = None, scoring: Any = None) -> None:
        self.estimator, self.alphas, self.cv, self.scoring = estimator, parameters["alpha"], cv, scoring

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **_params: Any) -> None:
        ridge = Ridge(**self.estimator.get_params())
        scorer = check_scoring(ridge, self.scoring)
        rows, targets = ridge._validated(X, y, **ridge._checks)
        # Folds are arrays: names of columns are for the last fit.
        ridge.__dict__.pop("feature_names_in_", None)
        weights = checked_weights(None if np.isscalar(sample_weight) else sample_weight, rows)
        folds = list(check_cv(self.cv).split(rows, targets))
        scoring = weights if self._scores_by_weights(ridge) else None
        scores = np.array([self._scores(ridge, scorer, rows, targets, weights, scoring, *fold) for fold in folds])
        means = scores.mean(axis=0)
        best = int(np.argmax(means))
        self.best_score_ = means[best]
        self.best_estimator_ = ridge.set_params(alpha=self.alphas[best])
        self.best_estimator_.fit(X, y, weights)

    def _scores_by_weights(self, ridge: Any) -> bool:
        """Whether scikit-learn's grid search weighs the scores: from version 1.8 on, if the scorer takes weights."""
        search = GridSearchCV(ridge, {}, scoring=self.scoring)
        return getattr(search, "_check_scorers_accept_sample_weight", lambda: False)()

    def _scores(
        self, ridge: Any, scorer: Any, X: Any, y: Any, weights: Any, scoring: Any, train: Any, test: Any
    ) -> list[float]:
        problem = Problem(X[train], len(self.alphas) * (1 if y.ndim == 1 else y.shape[1]))
        targets = y[train].reshape(len(train), -1).T
        own = None if weights is None else weights[train]
        given = {} if scoring is None else {"sample_weight": scoring[test]}
        starts: list[Any] = [None] * len(targets)
        controls, scores = ridge._controls(), []
        for alpha in self.alphas:
            params = {**controls, "alpha": float(alpha), "positive": False}
            found = [problem.solve("ridge", params, t, own, s) for t, s in zip(targets, starts, strict=True)]
            warn_unless_converged(ridge, *found)
            starts = [(one.coef, one.intercept) for one in found]
            ridge.coef_ = found[0].coef[0] if y.ndim == 1 else np.vstack([one.coef for one in found])
            intercepts = np.concatenate([one.intercept for one in found])
            ridge.intercept_ = intercepts[0] if y.ndim == 1 else intercepts
            ridge.n_features_in_ = X.shape[1]
            scores.append(scorer(ridge, X[test], y[test], **given))
        return scores


class RidgeCV(Accelerated, RegressorPrediction, _peer.RidgeCV):
    """Ridge regression with cross-validated penalty: :class:`sklearn.linear_model.RidgeCV` by warpfuse.

    Parameters and attributes are scikit-learn's. ``cv=None``, the default, is leave-one-out by singular values of X, and
    scikit-learn's own.

    Examples
    --------
    >>> import numpy as np
    >>> from warpfuse import RidgeCV
    >>> X = np.sin(np.arange(60.0)).reshape(20, 3)
    >>> RidgeCV(alphas=[1e-3, 1.0], cv=4).fit(X, 2 * X[:, 0] + 1).alpha_
    np.float64(0.001)
    """

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        from sklearn import get_config

        if isinstance(X, Dataset):
            return _WHOLE
        if self.cv is None:
            return "leave-one-out by singular values is scikit-learn's"
        if lies_on_gpu(X):
            return ridge_refusal(self, y, sample_weight)
        return "metadata is routed by scikit-learn" if get_config()["enable_metadata_routing"] else None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit to X of shape (n_samples, n_features) and y, with the best of the penalties.

        Parameters
        ----------
        X : array-like or sparse matrix
            An array of CuPy or PyTorch on a GPU is read where it lies, if ``cv`` is given.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), default=None
        **params : dict
            Of the scorer, with metadata routing.

        Returns
        -------
        self : object
        """
        if lies_on_gpu(X) and not self._left_to_sklearn(X, y, sample_weight):
            return ridge_there(self, X, y)
        if self._falls_back(X, y, sample_weight):
            return super().fit(X, y, sample_weight, **params)
        attributes_on_host(self)
        return _ridge_fit(self, X, y, sample_weight, **params)


class LogisticRegressionCV(Accelerated, ProbabilityPrediction, _peer.LogisticRegressionCV):
    """Logistic regression with cross-validated penalty: :class:`sklearn.linear_model.LogisticRegressionCV` by warpfuse.

    Parameters and attributes are scikit-learn's; ``solver`` changes nothing, but for ``"liblinear"``, which is left to
    scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from warpfuse import LogisticRegressionCV
    >>> X = np.sin(np.arange(120.0)).reshape(40, 3)
    >>> given = dict(scoring="accuracy", l1_ratios=(0,), use_legacy_attributes=False)
    >>> model = LogisticRegressionCV(Cs=5, cv=4, **given).fit(X, X[:, 0] > 0)
    >>> model.score(X, X[:, 0] > 0) > 0.9
    True
    """

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if isinstance(X, Dataset):
            return _WHOLE
        if self.solver == "liblinear":
            return "solver='liblinear' penalises the intercept and splits classes"
        if lies_on_gpu(X) and (reason := logistic_refusal(self, sample_weight)):
            return reason
        return "max_iter=0 fits nothing" if self.max_iter == 0 else None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit to X of shape (n_samples, n_features) and classes, with the best of the penalties.

        Parameters
        ----------
        X : array-like or sparse matrix
            An array of CuPy or PyTorch on a GPU is read where it lies; ``coefs_paths_`` is not kept then.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        **params : dict
            Of the splitter and the scorer, with metadata routing.

        Returns
        -------
        self : object
        """
        if lies_on_gpu(X) and not self._left_to_sklearn(X, y, sample_weight):
            return logistic_there(self, X, y)
        if self._falls_back(X, y, sample_weight):
            return super().fit(X, y, sample_weight, **params)
        attributes_on_host(self)
        return _logistic_fit(self, X, y, sample_weight, **params)

    def score(self, X: Any, y: Any, sample_weight: Any = None, **score_params: Any) -> float:
        """The figure of ``scoring``; of X on a GPU only predictions cross."""

        def score(*given: Any, **named: Any) -> float:
            return float(super(ClassifierPrediction, self).score(*given, **named, **score_params))

        return score_on_host(self, score, X, y, sample_weight)


def _logistic_path(X: Any, y: Any, *, classes: Any, Cs: Any = 10, **given: Any) -> tuple[Any, Any, Any]:
    """Coefficients with intercepts for each C, X placed once."""
    Cs = np.logspace(-4, 4, Cs) if np.ndim(Cs) == 0 else np.asarray(Cs, np.float64)
    classes = np.asarray(classes)
    codes = np.searchsorted(classes, y)
    if len(np.unique(codes)) < len(classes):
        # A fold without one of the classes: what its coefficients are is scikit-learn's to say.
        return _of_logistic._logistic_regression_path(X, y, classes=classes, Cs=Cs, **given)
    weights = class_weighted(given.get("class_weight"), classes, y, codes, given.get("sample_weight"))
    start = _first(given.get("coef"), given["fit_intercept"])
    problem, paths, steps, solutions = Problem(X, len(Cs)), [], [], []
    for C in Cs:
        found = problem.solve("logistic_regression", _logistic_params(given, float(C)), codes, weights, start)
        solutions.append(found)
        start = (found.coef, found.intercept)
        coef, intercept = found.coef, found.intercept
        if len(classes) > 2:
            intercept = intercept - intercept.mean()
        both = np.column_stack([coef, intercept]) if given["fit_intercept"] else coef
        paths.append(both[0] if len(classes) == 2 else both)
        steps.append(found.n_iter)
    warn_unless_converged(SimpleNamespace(tol=given.get("tol", 1e-4), solver=given.get("solver", "lbfgs")), *solutions)
    return np.array(paths), Cs, np.array(steps, dtype=np.int32)


def _logistic_params(given: dict[str, Any], C: float) -> dict[str, Any]:
    penalty, ratio = given.get("penalty", "l2"), given.get("l1_ratio")
    share = {"l2": 0.0, "l1": 1.0}.get(penalty, ratio if ratio is not None else 0.0)
    return {
        "C": np.inf if penalty is None else C,
        "l1_ratio": float(share),
        "tol": given.get("tol", 1e-4),
        "max_iter": given.get("max_iter", 100),
        "fit_intercept": given["fit_intercept"],
    }


def _first(coef: Any, fit_intercept: bool) -> tuple[Any, Any] | None:
    if coef is None:
        return None
    coef = np.atleast_2d(coef)
    return (coef[:, :-1], coef[:, -1]) if fit_intercept else (coef, np.zeros(len(coef)))


_squares_fit = rebound(
    _of_squares.LinearModelCV.fit,
    validate_data=_validate_data,
    _path_residuals=rebound(_of_squares._path_residuals, check_array=_check_rows),
)
_ridge_fit = fit_context(prefer_skip_nested_validation=True)(
    rebound(_of_ridge._BaseRidgeCV.fit, GridSearchCV=_RidgeSearch)
)
_logistic_fit = rebound(
    _peer.LogisticRegressionCV.fit,
    validate_data=_validate_data,
    _log_reg_scoring_path=rebound(_of_logistic._log_reg_scoring_path, _logistic_regression_path=_logistic_path),
    _logistic_regression_path=_logistic_path,
)
