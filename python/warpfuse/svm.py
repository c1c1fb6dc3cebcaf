"""Linear support vector machines with squared losses.

The classes are scikit-learn's of the same names with another ``fit``. The losses without the square (``"hinge"`` and
``"epsilon_insensitive"``, the default of LinearSVR) have kinks, which only dual methods handle: scikit-learn fits those.
"""

from typing import Any, ClassVar

from sklearn import svm as _peer

from ._accelerated import ClassifierPrediction, RegressorPrediction
from ._fit import warn_unless_converged
from ._linear import ClassifierFit, LinearFit, OneTargetFit

__all__ = ["LinearSVC", "LinearSVR"]


class _SquaredLoss(LinearFit):
    """What both have in common."""

    _name: ClassVar[str]

    def _objective(self) -> tuple[str, dict[str, Any]]:
        return self._name, {"C": float(self.C), "intercept_scaling": float(self.intercept_scaling)}

    def _scaling_refusal(self) -> str | None:
        if self.fit_intercept and self.intercept_scaling <= 0:
            return "intercept_scaling must be above 0"
        return None


class LinearSVC(_SquaredLoss, ClassifierFit, ClassifierPrediction, _peer.LinearSVC):
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

    _name = "linear_svc"

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if self.loss != "squared_hinge":
            return f"loss={self.loss!r} is not offered, 'squared_hinge' is"
        if self.penalty != "l2":
            return f"penalty={self.penalty!r} is not offered, 'l2' is"
        if self.multi_class != "ovr":
            return f"multi_class={self.multi_class!r} is not offered, 'ovr' is"
        return self._scaling_refusal()

    def _fit_served(self, X: Any, y: Any, weights: Any) -> None:
        codes, weights = self._encoded(X, y, weights)
        found = self._solve_classes(X, codes, weights)
        self.coef_, self.n_iter_ = found.coef, found.n_iter
        self.intercept_ = found.intercept if self.fit_intercept else 0.0
        warn_unless_converged(self, found)


class LinearSVR(_SquaredLoss, OneTargetFit, RegressorPrediction, _peer.LinearSVR):
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

    _name = "linear_svr"

    def _objective(self) -> tuple[str, dict[str, Any]]:
        name, params = super()._objective()
        return name, {**params, "epsilon": float(self.epsilon)}

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if self.loss != "squared_epsilon_insensitive":
            return f"loss={self.loss!r} is not offered, 'squared_epsilon_insensitive' is"
        return self._scaling_refusal()

    def _fit_served(self, X: Any, y: Any, weights: Any) -> None:
        self._solve_one(X, y, weights)
        if self.fit_intercept:
            # scikit-learn's is a list of one.
            self.intercept_ = self.intercept_.reshape(1)
