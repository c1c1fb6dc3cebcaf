"""Least squares with an l1 penalty, with an l2 penalty besides or none."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn import linear_model as _peer

from .. import _native
from .._accelerated import Accelerated
from .._again import ANY
from .._dataset import Dataset
from .._lent import lies_on_gpu
from .._plain import MANY, is_large
from .._sklearn import check_gram
from .._warn import warn
from ._least_squares import SeveralTargets, columns, positive_refusal


class _CoordinateDescent(SeveralTargets):
    """What Lasso and ElasticNet share: all but the default of ``l1_ratio``."""

    _numbers: ClassVar[dict[str, tuple[float, float]]] = {**SeveralTargets._numbers, "alpha": ANY, "l1_ratio": ANY}
    #: The gap of a large X is found where X has been placed.
    _most_again: ClassVar[int] = MANY
    n_iter_: Any
    dual_gap_: Any
    _not_converged = "Objective did not converge. You might want to increase the number of iterations"

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if not isinstance(self.precompute, bool) and (isinstance(X, Dataset) or lies_on_gpu(X)):
            return "a Gram matrix of one's own is compared with X on the host"
        return positive_refusal(self, X)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Self:
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
        if not check_input:
            self._count_fallback(X, "check_input=False is for scikit-learn's own loops")
            return super(Accelerated, self).fit(X, y, sample_weight, check_input)
        # One weight for all changes nothing.
        return super().fit(X, y, None if np.isscalar(sample_weight) else sample_weight)

    def _objective(self) -> tuple[str, dict[str, Any]]:
        name = "lasso" if self.l1_ratio == 1 else "elastic_net"
        penalty = {"alpha": float(self.alpha), "l1_ratio": float(self.l1_ratio)}
        return name, {**penalty, "positive": bool(self.positive)}

    def _fit_served(self, X: Any, y: Any, weights: Any) -> None:
        if self.alpha == 0:
            warn(
                "With alpha=0, this algorithm does not converge well. You are advised to use the LinearRegression"
                " estimator",
            )
        if not isinstance(self.precompute, bool):
            check_gram(self.precompute, X, y, weights, self.fit_intercept)
        (name, params), count = self._objective(), len(columns(y))
        # The gap of a large X is found where X has been placed for the fit: NumPy would widen a copy of it.
        problem = self._placed(X, [params] * count, kept=not isinstance(X, Dataset) and is_large(X))
        try:
            solutions = self._solve_targets(name, [params] * count, X, y, weights, self._starts(X, count), problem)
        except ValueError as error:
            if "too large" not in str(error):
                raise
            # X has been found finite: squares of its values overflow. Programs look for scikit-learn's words.
            raise ValueError(f"Coordinate descent iterations resulted in non-finite parameter values: {error}") from error
        iterations = [s.n_iter for s in solutions]
        products = X if problem.placed is None else problem.placed
        known = [s.gap for s in solutions]
        triples = zip(known, columns(y), solutions, strict=True)
        gaps = np.array([self._gap(products, t, s, weights) if gap is None else gap for gap, t, s in triples])
        self.n_iter_, self.dual_gap_ = (iterations[0], gaps[0]) if count == 1 else (iterations, gaps)
        if count == 1:
            self.coef_ = np.atleast_2d(self.coef_)[0]

    def _is_repeatable(self) -> bool:
        return self.alpha != 0 and isinstance(self.precompute, bool) and super()._is_repeatable()

    def _keep(self, X: Any, y: Any, found: Any, weights: Any = None) -> None:
        super()._keep(X, y, found, weights)
        gap = found.gap
        self.n_iter_, self.dual_gap_ = found.n_iter, np.float64(self._gap(X, y, found, weights) if gap is None else gap)

    def _starts(self, X: Any, count: int) -> list[Any] | None:
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        # Somebody may have set coefficients alone, as one does with scikit-learn's.
        coef, intercept = np.atleast_2d(self.coef_), np.atleast_1d(getattr(self, "intercept_", 0.0))
        if coef.shape != (count, X.shape[1]):
            return None
        return list(zip(coef, np.broadcast_to(intercept, count), strict=True))

    def _gap(self, X: Any, target: Any, solution: _native.Solution, weights: Any) -> float:
        """The duality gap over the number of samples, as scikit-learn has it; X as it came, or where it has been placed."""
        placed = isinstance(X, _native.Dataset)
        coef = solution.coef[0].astype(np.float64)
        if placed:
            predicted = X.decision(coef[None], solution.intercept.astype(np.float64)).ravel()
        else:
            predicted = X @ coef + float(solution.intercept[0])
        residual = np.asarray(target, np.float64) - predicted
        weighted = residual if weights is None else weights * (len(target) / weights.sum()) * residual
        correlation = X.transposed(weighted) if placed else X.T @ weighted
        mean = target.mean() if weights is None else np.average(target, weights=weights)
        centred = target - mean if self.fit_intercept else target
        l1 = self.alpha * self.l1_ratio * len(target)
        l2 = self.alpha * (1.0 - self.l1_ratio) * len(target)
        pull = correlation - l2 * coef
        # Coefficients that may not be negative are held at 0 by any pull downwards.
        bound = (pull if self.positive else np.abs(pull)).max(initial=0.0)
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
