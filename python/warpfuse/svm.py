"""Linear support vector machines.

The classes are scikit-learn's of the same names with another ``fit``. The losses without the square (``"hinge"`` and
``"epsilon_insensitive"``, the default of LinearSVR) have kinks: they are fitted on the CPU, whatever the device, by an
interior-point method whose answer is the minimum and does not depend on ``random_state``.
"""

from typing import Any, ClassVar

from sklearn import svm as _peer

from ._accelerated import ClassifierPrediction, RegressorPrediction, shape_of
from ._again import ANY
from ._fit import warn_unless_converged
from ._lent import lies_on_gpu
from ._linear import ClassifierFit, LinearFit, OneTargetFit

__all__ = ["LinearSVC", "LinearSVR"]

#: Columns up to which a loss with kinks is fitted: each iteration factors a matrix of their square.
_MOST_COLUMNS = 1000


class _SquaredLoss(LinearFit):
    """What both have in common."""

    _name: ClassVar[str]
    _numbers: ClassVar[dict[str, tuple[float, float]]] = {
        **LinearFit._numbers,
        **dict.fromkeys(("C", "intercept_scaling"), ANY),
        "epsilon": (0.0, ANY[1]),
    }

    def _objective(self) -> tuple[str, dict[str, Any]]:
        return self._name, {
            "C": float(self.C),
            "loss": self.loss,
            "intercept_scaling": float(self.intercept_scaling),
        }

    def _kink_refusal(self, X: Any, kinked: str) -> str | None:
        if self.loss != kinked:
            return None
        if lies_on_gpu(X):
            return f"loss={kinked!r} is fitted on the CPU"
        # What is no matrix is for scikit-learn's checks to say.
        if shape_of(X)[1:] > (_MOST_COLUMNS,):
            return f"loss={kinked!r} is for X of up to {_MOST_COLUMNS} columns"
        return None

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
        if self.penalty != "l2":
            return f"penalty={self.penalty!r} is not offered, 'l2' is"
        if self.multi_class != "ovr":
            return f"multi_class={self.multi_class!r} is not offered, 'ovr' is"
        if self.loss == "hinge" and self.dual is False:
            # scikit-learn refuses it with its own words.
            return "loss='hinge' with dual=False is not offered, any other dual is"
        return self._scaling_refusal() or self._kink_refusal(X, "hinge")

    def _fit_served(self, X: Any, y: Any, weights: Any) -> None:
        codes, weights = self._encoded(X, y, weights)
        self._solve_classes(X, codes, weights)

    def _keep(self, X: Any, y: Any, found: Any, weights: Any = None) -> None:
        self.coef_, self.n_iter_ = found.coef, found.n_iter
        self.intercept_ = found.intercept if self.fit_intercept else 0.0
        if not found.converged:
            warn_unless_converged(self, found)


class LinearSVR(_SquaredLoss, OneTargetFit, RegressorPrediction, _peer.LinearSVR):
    """Linear support vector regression: :class:`sklearn.svm.LinearSVR` by warpfuse.

    Parameters and attributes are scikit-learn's, and so is the default ``loss="epsilon_insensitive"``.

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
        return self._scaling_refusal() or self._kink_refusal(X, "epsilon_insensitive")

    def _fit_served(self, X: Any, y: Any, weights: Any) -> None:
        self._solve_one(X, y, weights)

    def _keep(self, X: Any, y: Any, found: Any, weights: Any = None) -> None:
        super()._keep(X, y, found, weights)
        if self.fit_intercept:
            # scikit-learn's is a list of one.
            self.intercept_ = found.intercept
