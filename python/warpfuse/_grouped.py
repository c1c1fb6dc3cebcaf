"""A model for each group of rows: thousands of small fits at once."""

from copy import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import column_or_1d, validate_data

from . import _native, _report
from ._accelerated import _HOW
from ._config import device_for
from ._dataset import Dataset, entries, native
from ._fit import _targets
from ._lent import lies_on_gpu
from ._linear import LinearFit, _encoded
from ._sklearn import checked_weights
from ._warn import warn

__all__ = ["FittedGroups", "fit_groups"]

#: Ends of fits whose coefficients are those of a minimum.
_SUCCESSES = ("converged", "precision_limit")


def _is_probabilistic(groups: "FittedGroups") -> bool:
    return hasattr(groups._model, "predict_proba")


class FittedGroups:
    """The models that :func:`fit_groups` fitted, one for each group.

    Attributes
    ----------
    groups_ : ndarray of shape (n_groups,)
        The labels of the groups, sorted.
    coef_ : ndarray of shape (n_groups, n_features)
        NaN where a group has no model.
    intercept_ : ndarray of shape (n_groups,)
        Of a group whose rows are of one class infinite, with coefficients of 0: it predicts that class.
    n_iter_ : ndarray of shape (n_groups,)
    converged_ : ndarray of bool of shape (n_groups,)
        Whether the coefficients are those of a minimum.
    status_ : ndarray of str of shape (n_groups,)
        "converged", "precision_limit", "iteration_limit", "stalled", "singular", "separable" (classes that no penalty holds),
        "one_class" or "failed".
    reasons_ : dict
        Why groups have no model, by their labels.
    classes_ : ndarray of shape (2,)
        Of a classifier.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X had names.

    Examples
    --------
    >>> import numpy as np
    >>> import warpfuse
    >>> X, y = np.array([[0.0], [0.0], [1.0], [1.0], [2.0], [2.0]]), np.array([1.0, 5.0, 3.0, 4.0, 5.0, 3.0])
    >>> shops = np.array(["north", "south"] * 3)
    >>> models = warpfuse.fit_groups(warpfuse.LinearRegression(), X, y, shops)
    >>> models
    <2 groups of LinearRegression(), 1 features>
    >>> models.estimator_of("south").predict([[3.0]]).round(6)
    array([2.])
    """

    def __init__(self, model: Any, groups: NDArray[Any], found: _native.GroupedSolution) -> None:
        self._model = model
        self.groups_ = groups
        self.coef_, self.intercept_, self.n_iter_ = found.coef, found.intercept, found.n_iter
        self.status_ = np.array(found.status)
        self.converged_ = np.isin(self.status_, _SUCCESSES)
        self.reasons_ = {_label(groups, at): why for at, why in found.failed}
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def __len__(self) -> int:
        return len(self.groups_)

    def __repr__(self) -> str:
        return f"<{len(self)} groups of {clone(self._model)!r}, {self.coef_.shape[1]} features>"

    def estimator_of(self, group: Any) -> Any:
        """The estimator as fitted to the rows of one group.

        Parameters
        ----------
        group : a label
            One of ``groups_``.

        Returns
        -------
        estimator
            Of the class that was given, without what only a fit by itself knows: duality gaps, the scale of
            :class:`HuberRegressor`.

        Examples
        --------
        >>> import warpfuse
        >>> models = warpfuse.fit_groups(warpfuse.Ridge(alpha=0.0), [[0.0], [1.0], [0.0], [1.0]], [0, 1, 0, 3], [7, 7, 9, 9])
        >>> models.estimator_of(9).coef_.round(6)
        array([3.])
        """
        at = self._places(np.array([group]))
        self._expect_models(at)
        model, own = copy(self._model), slice(at[0], at[0] + 1)
        model._keep_of_group(
            SimpleNamespace(
                coef=self.coef_[own].copy(),
                intercept=self.intercept_[own].copy(),
                n_iter=int(self.n_iter_[at[0]]),
                converged=True,
                scale=None,
                gap=np.nan,
            )
        )
        return model

    def decision_function(self, X: Any, groups: Any) -> NDArray[Any]:
        """Linear predictors ``X @ coef + intercept`` of rows by the models of their groups.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        groups : array-like of shape (n_samples,)
            The group of each row, in any order; all of them among ``groups_``.

        Returns
        -------
        ndarray of shape (n_samples,)

        Examples
        --------
        >>> import warpfuse
        >>> models = warpfuse.fit_groups(warpfuse.Ridge(alpha=0.0), [[0.0], [1.0], [0.0], [1.0]], [0, 1, 0, 3], [7, 7, 9, 9])
        >>> models.decision_function([[2.0], [2.0]], [9, 7]).round(6)
        array([6., 2.])
        """
        X = validate_data(self._model, X, **_HOW, reset=False)
        labels, codes = _numbered(groups)
        check_consistent_length(X, codes)
        at = self._places(labels)
        self._expect_models(at)
        models = self.coef_.astype(np.float64, copy=False), self.intercept_.astype(np.float64, copy=False)
        found = _native.group_predictors(native(X), *models, at.astype(np.uint32)[codes])
        return found.astype(X.dtype, copy=False)

    def predict(self, X: Any, groups: Any) -> NDArray[Any]:
        """Predicted means, or classes, of rows by the models of their groups.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        groups : array-like of shape (n_samples,)
            The group of each row, in any order; all of them among ``groups_``.

        Returns
        -------
        ndarray of shape (n_samples,)

        Examples
        --------
        >>> import warpfuse
        >>> X, sold, shops = [[0.0], [1.0], [0.0], [1.0]], [1.0, 2.0, 5.0, 5.0], ["a", "a", "b", "b"]
        >>> models = warpfuse.fit_groups(warpfuse.PoissonRegressor(alpha=0.0), X, sold, shops)
        >>> models.predict([[2.0], [2.0]], ["b", "a"]).round(3)
        array([5., 4.])
        """
        t = self.decision_function(X, groups)
        if hasattr(self, "classes_"):
            found: NDArray[Any] = self.classes_[(t > 0).astype(np.intp)]
            return found
        means: NDArray[Any] = self._model._mean(t)
        return means

    @available_if(_is_probabilistic)
    def predict_proba(self, X: Any, groups: Any) -> NDArray[Any]:
        """Probabilities of both classes, in the order of ``classes_``, of rows by the models of their groups.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        groups : array-like of shape (n_samples,)
            The group of each row, in any order; all of them among ``groups_``.

        Returns
        -------
        ndarray of shape (n_samples, 2)

        Examples
        --------
        >>> import warpfuse
        >>> X, bought, shops = [[0.0], [1.0], [0.0], [1.0]], [0, 1, 1, 0], ["a", "a", "b", "b"]
        >>> models = warpfuse.fit_groups(warpfuse.LogisticRegression(), X, bought, shops)
        >>> models.predict_proba([[0.5], [0.5]], ["b", "a"]).round(2)
        array([[0.5, 0.5],
               [0.5, 0.5]])
        """
        pairs: Any = _native.sigmoids(self.decision_function(X, groups))
        found: NDArray[Any] = pairs.reshape(-1, 2)
        return found

    def _places(self, labels: NDArray[Any]) -> NDArray[np.intp]:
        """Where labels are among the groups."""
        at = np.minimum(np.searchsorted(self.groups_, labels), len(self) - 1)
        unknown = labels[self.groups_[at] != labels]
        if len(unknown):
            raise ValueError(f"groups contains previously unseen labels: {unknown[:5].tolist()}")
        return at

    def _expect_models(self, at: NDArray[np.intp]) -> None:
        for failed in at[self.status_[at] == "failed"]:
            group = _label(self.groups_, failed)
            raise ValueError(f"group {group!r} has no model: {self.reasons_[group]}")


def fit_groups(estimator: Any, X: Any, y: Any, groups: Any, sample_weight: Any = None) -> FittedGroups:
    """Fits an estimator to each group of rows: a model for each shop, sensor or customer.

    The same as ``{g: clone(estimator).fit(X[groups == g], y[groups == g]) for g in np.unique(groups)}``, but all groups at
    once: a block of the GPU, or a core of the processor, makes one fit from its first to its last step.

    Parameters
    ----------
    estimator : a linear model of warpfuse
        Any class but those that choose a penalty (``RidgeCV``) and ``KernelRidge``. It is not changed.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        NumPy's arrays and SciPy's CSR of float32 and float64 are borrowed. Those of up to 64 features are fitted together, of
        more each by itself on the processor, as are estimators with an l1 penalty or a loss with kinks.
    y : array-like of shape (n_samples,)
        Numbers, or labels of two classes.
    groups : array-like of shape (n_samples,)
        The group of each row: labels of any type, in any order. Rows that are sorted by them are fitted faster.
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    FittedGroups

    Warns
    -----
    ConvergenceWarning
        Once, where groups did not converge.
    UserWarning
        Once, where groups have no model, such as one all of whose rows have a weight of 0. They do not hinder the others.

    Examples
    --------
    >>> import numpy as np
    >>> import warpfuse
    >>> rng = np.random.default_rng(0)
    >>> X, sensors, slopes = rng.normal(size=(6000, 3)), np.arange(6000) % 1000, rng.normal(size=(1000, 3))
    >>> y = 1.0 + (X * slopes[sensors]).sum(axis=1)
    >>> models = warpfuse.fit_groups(warpfuse.LinearRegression(), X, y, sensors)
    >>> models.coef_.shape, bool(np.allclose(models.coef_, slopes)), bool(models.converged_.all())
    ((1000, 3), True, True)
    """
    if not isinstance(estimator, LinearFit):
        raise TypeError(f"a linear model of warpfuse is needed, got {type(estimator).__name__}")
    if isinstance(X, Dataset) or lies_on_gpu(X):
        raise TypeError("fit_groups takes X on the host, from where rows go to the device in the order of their groups")
    model, given = clone(estimator), (X, y)
    _expect_served(model, X)
    checks = {**model._checks, "multi_output": False}
    X, y = model._validated(X, y, **checks)
    labels, codes = _numbered(groups)
    check_consistent_length(X, codes)
    weights = checked_weights(sample_weight, X)
    if is_classifier(model):
        y, weights = model._encoded(X, y, weights)
    name, params = model._objective()
    _report.served(type(model).__name__)
    on, y = device_for(entries(X)), _targets(name, y)
    try:
        found = _native.fit_groups(native(X), on, name, {**model._controls(), **params}, y, codes, weights)
    except ValueError:
        model._complain(*given, **checks)
        raise
    if found.failed:
        # The library alone has looked at the values of large arrays.
        model._complain(*given, **checks)
    fitted = FittedGroups(model, labels, found)
    _warn_of(fitted, found)
    return fitted


def _expect_served(model: Any, X: Any) -> None:
    """Refuses parameters that warpfuse does not offer, or not of groups."""
    model._validate_params()
    reason = model._refusal(X)
    if reason is None and isinstance(getattr(model, "class_weight", None), str):
        reason = "class_weight='balanced' is not offered, a weight for each class is"
    if reason is not None:
        raise ValueError(f"{type(model).__name__} cannot be fitted to groups: {reason}")


def _numbered(groups: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The labels, and the number of each row's, in a byte where that is enough."""
    groups = column_or_1d(check_array(groups, ensure_2d=False, dtype=None, input_name="groups"))
    found = _encoded(groups)
    if found is not None:
        return found
    labels, codes = np.unique(groups, return_inverse=True)
    return labels, codes.astype(np.uint32)


def _label(groups: NDArray[Any], at: int) -> Any:
    """One of the labels, as Python has it."""
    return groups[at : at + 1].tolist()[0]


def _warn_of(fitted: FittedGroups, found: _native.GroupedSolution) -> None:
    count, of = len(found.failed), len(fitted)
    if count:
        at, why = found.failed[0]
        warn(f"{count} of {of} groups have no model, the first of them {_label(fitted.groups_, at)!r}: {why}")
    if found.unconverged is not None:
        at, advice = found.unconverged
        others = np.count_nonzero(~fitted.converged_ & (fitted.status_ != "one_class")) - count
        warn(
            f"{others} of {of} groups did not converge, the first of them {_label(fitted.groups_, at)!r} ({advice})."
            " Increase the number of iterations (max_iter), or scale the data.",
            ConvergenceWarning,
        )
