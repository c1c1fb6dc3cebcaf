"""Linear support vector machines with squared losses.

The classes are scikit-learn's of the same names with another ``fit``. The losses without the square (``"hinge"`` and
``"epsilon_insensitive"``, the default of LinearSVR) have kinks, which only dual methods handle: scikit-learn fits those.
"""

from typing import Any

import numpy as np
from sklearn import svm as _peer
from sklearn.utils.multiclass import check_classification_targets

from ._accelerated import Accelerated, ClassifierPrediction, RegressorPrediction
from ._fit import Problem, tolerance, warn_unless_converged
from ._sklearn import checked_weights, class_weighted, fit_context

__all__ = ["LinearSVC", "LinearSVR"]


class _SquaredLoss(Accelerated):
    """What both have in common."""

    def _params(self, X: Any) -> dict[str, Any]:
        return {
            "C": float(self.C),
            "intercept_scaling": float(self.intercept_scaling),
            "tol": tolerance(self.tol, X.dtype),
            "max_iter": self.max_iter,
            "fit_intercept": self.fit_intercept,
        }

    def _scaling_refusal(self) -> str | None:
        if self.fit_intercept and self.intercept_scaling <= 0:
            return "intercept_scaling must be above 0"
        return None


class LinearSVC(_SquaredLoss, ClassifierPrediction, _peer.LinearSVC):
    """Linear support vector classification: :class:`sklearn.svm.LinearSVC` by warpfuse.

    Parameters and attributes are scikit-learn's. Sparse X stays sparse, and weighted fits are those with repeated
    rows.

    Examples
    --------
    >>> from warpfuse import LinearSVC
    >>> model = LinearSVC().fit([[0.0, 1.0], [1.0, 0.0], [4.0, 4.0], [5.0, 3.0]], [-1, -1, 1, 1])
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([-1,  1])
    """

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if self.loss != "squared_hinge":
            return f"loss={self.loss!r} is not offered, 'squared_hinge' is"
        if self.penalty != "l2":
            return f"penalty={self.penalty!r} is not offered, 'l2' is"
        if self.multi_class != "ovr":
            return f"multi_class={self.multi_class!r} is not offered, 'ovr' is"
        return self._scaling_refusal()

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LinearSVC":
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
        found = Problem(X).solve("linear_svc", self._params(X), codes, weights)
        self.coef_, self.n_iter_ = found.coef, found.n_iter
        self.intercept_ = found.intercept if self.fit_intercept else 0.0
        warn_unless_converged(self, found)
        return self


class LinearSVR(_SquaredLoss, RegressorPrediction, _peer.LinearSVR):
    """Linear support vector regression: :class:`sklearn.svm.LinearSVR` by warpfuse.

    Parameters and attributes are scikit-learn's, and so is the default ``loss="epsilon_insensitive"``, with which
    scikit-learn fits. ``loss="squared_epsilon_insensitive"`` is warpfuse's.

    Examples
    --------
    >>> from warpfuse import LinearSVR
    >>> model = LinearSVR(loss="squared_epsilon_insensitive", C=1e6).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.coef_.round(4)
    array([2.])
    """

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if self.loss != "squared_epsilon_insensitive":
            return f"loss={self.loss!r} is not offered, 'squared_epsilon_insensitive' is"
        return self._scaling_refusal()

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LinearSVR":
        """Fit to X of shape (n_samples, n_features) and y of (n_samples,).

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
        X, y = self._validated(X, y, y_numeric=True)
        params = {**self._params(X), "epsilon": float(self.epsilon)}
        found = Problem(X).solve("linear_svr", params, y, checked_weights(sample_weight, X))
        self.coef_, self.n_iter_ = found.coef[0], found.n_iter
        self.intercept_ = found.intercept if self.fit_intercept else 0.0
        warn_unless_converged(self, found)
        return self
