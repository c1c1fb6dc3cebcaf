"""Regressions that rows far off do not spoil."""

from typing import Any, ClassVar

from sklearn import linear_model as _peer

from .._accelerated import RegressorPrediction
from .._again import ANY
from .._dataset import Dataset
from .._lent import lies_on_gpu
from .._linear import OneTargetFit
from .._plain import is_large


class HuberRegressor(OneTargetFit, RegressorPrediction, _peer.HuberRegressor):
    """Huber regression: :class:`sklearn.linear_model.HuberRegressor` by warpfuse.

    Parameters and attributes are scikit-learn's.

    Examples
    --------
    >>> from warpfuse import HuberRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], [0.0, 2.1, 3.9, 6.0, 8.1, 9.9, 100.0]
    >>> model = HuberRegressor().fit(X, y)
    >>> model.coef_.round(1), bool(model.outliers_[-1])
    (array([2.]), True)
    """

    _checks: ClassVar[dict[str, Any]] = {"y_numeric": True}
    _numbers: ClassVar[dict[str, tuple[float, float]]] = {**OneTargetFit._numbers, "alpha": ANY, "epsilon": ANY}

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        return "max_iter=0 fits nothing" if self.max_iter == 0 else None

    def _objective(self) -> tuple[str, dict[str, Any]]:
        return "huber", {"alpha": float(self.alpha), "epsilon": float(self.epsilon)}

    def _fit_served(self, X: Any, y: Any, weights: Any) -> None:
        self._solve_one(X, y, weights, self._own_start())

    def _keep(self, X: Any, y: Any, found: Any, weights: Any = None) -> None:
        self._keep_of_group(found)
        self.scale_ = found.scale
        # What is small has been checked.
        is_small = not isinstance(X, Dataset) and not is_large(X)
        predicted = X @ self.coef_ + self.intercept_ if is_small else self.predict(X)
        self.outliers_ = abs(y - predicted) > found.scale * self.epsilon

    def _keep_of_group(self, found: Any) -> None:
        super()._keep(None, None, found)


class QuantileRegressor(OneTargetFit, RegressorPrediction, _peer.QuantileRegressor):
    """Quantile regression: :class:`sklearn.linear_model.QuantileRegressor` by warpfuse.

    Parameters and attributes are scikit-learn's; ``solver`` changes nothing. It is fitted on the CPU, whatever the device.

    Examples
    --------
    >>> from warpfuse import QuantileRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 2.0, 4.0, 6.0, 100.0]
    >>> QuantileRegressor(alpha=0.0).fit(X, y).coef_.round(3)
    array([2.])
    """

    _checks: ClassVar[dict[str, Any]] = {"y_numeric": True, "multi_output": False}
    _numbers: ClassVar[dict[str, tuple[float, float]]] = {"alpha": ANY, "quantile": ANY}

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if self.solver_options is not None:
            return "solver_options are for a solver of SciPy"
        if self.solver == "interior-point":
            return "solver='interior-point' is one that scikit-learn refuses, with its reason"
        return "a loss with kinks is fitted on the CPU" if lies_on_gpu(X) else None

    def _controls(self) -> dict[str, Any]:
        return {"tolerance": 1e-8, "max_iter": 1000, "fit_intercept": self.fit_intercept}

    def _objective(self) -> tuple[str, dict[str, Any]]:
        return "quantile", {"alpha": float(self.alpha), "quantile": float(self.quantile)}

    def _fit_served(self, X: Any, y: Any, weights: Any) -> None:
        self._solve_one(X, y, weights)
