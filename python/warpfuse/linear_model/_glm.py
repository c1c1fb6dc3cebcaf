"""The generalised linear models that scikit-learn has, by warpfuse."""

from typing import Any, ClassVar

import numpy as np
from sklearn import linear_model as _peer

from .._accelerated import RegressorPrediction
from .._again import ANY
from .._lent import lies_on_gpu, namespace_of
from .._linear import OneTargetFit
from .._there import with_attributes_on_host

#: By class and family.
_losses: dict[tuple[Any, ...], Any] = {}


class _Glm(OneTargetFit, RegressorPrediction):
    """What scikit-learn's generalised linear models share."""

    _checks: ClassVar[dict[str, Any]] = {"multi_output": False, "y_numeric": True}
    _numbers: ClassVar[dict[str, tuple[float, float]]] = {**OneTargetFit._numbers, "alpha": ANY}
    _family: str

    def _family_params(self) -> dict[str, Any]:
        return {"family": self._family, "link": "log"}

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        return None if isinstance(self.solver, str) else "solvers of one's own are scikit-learn's"

    def _objective(self) -> tuple[str, dict[str, Any]]:
        penalty = {"alpha": float(self.alpha), "l1_ratio": 0.0}
        return "glm", {**self._family_params(), **penalty, "solver": "auto"}

    def _fit_served(self, X: Any, y: Any, weights: Any) -> None:
        try:
            self._solve_one(X, y, weights, self._own_start())
        except ValueError:
            # The library has looked at the range; programs look for scikit-learn's words.
            self._expect_in_range(np.asarray(y, dtype=X.dtype))
            raise

    def _keep(self, X: Any, y: Any, found: Any, weights: Any = None) -> None:
        super()._keep(X, y, found, weights)
        self._base_loss = self._shared_loss()

    def _shared_loss(self) -> Any:
        """scikit-learn's loss, which has no state: making one takes as long as half of what else Python does for a small fit."""
        key = (type(self), *self._family_params().values())
        if key not in _losses:
            _losses[key] = self._get_loss()
        return _losses[key]

    def _expect_in_range(self, y: Any) -> None:
        loss = self._shared_loss()
        if not loss.in_y_true_range(y):
            raise ValueError(
                f"Some value(s) of y are out of the valid range of the loss {type(loss).__name__!r}."
            )

    def _linear_predictor(self, X: Any) -> Any:
        found = self._product(X)
        if found is None:
            return with_attributes_on_host(self, super()._linear_predictor, X)
        return found.ravel()

    def _mean(self, t: Any) -> Any:
        return np.exp(t) if self._family_params()["link"] == "log" else t

    def predict(self, X: Any) -> Any:
        """The mean of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset` of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Where X lies.
        """
        if not lies_on_gpu(X):
            return super().predict(X)
        t = self._linear_predictor(X)
        return namespace_of(X).xp.exp(t) if self._family_params()["link"] == "log" else t


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

    #: Of other powers some have a distribution or a link of their own.
    _numbers: ClassVar[dict[str, tuple[float, float]]] = {**_Glm._numbers, "power": (1.0, 2.0)}

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if self.power < 0:
            return "powers below 0 are not offered"
        return super()._refusal(X, y, sample_weight)

    def _family_params(self) -> dict[str, Any]:
        link = self.link
        if link == "auto":
            link = "identity" if self.power <= 0 else "log"
        return {"family": "tweedie", "power": float(self.power), "link": link}
