"""Least squares of one target or several, with an l2 penalty or none."""

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn import linear_model as _peer

from .._again import ANY
from .._accelerated import RegressorPrediction
from .. import _native
from .._fit import Problem, warn_unless_converged
from .._lent import lies_on_gpu
from .._linear import LinearFit
from .._warn import warn


class SeveralTargets(LinearFit, RegressorPrediction):
    """Fits of one target or several, X placed once."""

    _checks: ClassVar[dict[str, Any]] = {"multi_output": True, "y_numeric": True}

    def _solve_targets(
        self,
        name: str,
        per_target: list[dict[str, Any]],
        X: Any,
        y: Any,
        weights: Any,
        starts: Any = None,
        problem: Problem | None = None,
    ) -> list[_native.Solution]:
        problem, controls = problem or self._placed(X, per_target), self._controls()
        starts = starts or [None] * len(per_target)
        triples = zip(per_target, columns(y), starts, strict=True)
        solutions = [problem.solve(name, {**controls, **params}, t, weights, start) for params, t, start in triples]
        self._set_coefficients(solutions, y.ndim)
        warn_unless_converged(self, *solutions)
        return solutions

    def _keep(self, X: Any, y: Any, found: Any, weights: Any = None) -> None:
        self.coef_, self.intercept_ = found.coef[0], found.intercept[0] if self.fit_intercept else 0.0
        if not found.converged:
            warn_unless_converged(self, found)

    def _placed(self, X: Any, per_target: list[dict[str, Any]], *, kept: bool = False) -> Problem:
        on_cpu = any(params.get("positive", False) for params in per_target)
        return Problem(X, len(per_target), on_cpu=on_cpu, kept=kept)

    def _set_coefficients(self, solutions: list[_native.Solution], ndim: int) -> None:
        if ndim == 1:
            self.coef_, self.intercept_ = solutions[0].coef[0], solutions[0].intercept[0]
        else:
            self.coef_ = np.vstack([s.coef for s in solutions])
            self.intercept_ = np.concatenate([s.intercept for s in solutions])
        if not self.fit_intercept:
            self.intercept_ = 0.0


def positive_refusal(estimator: Any, X: Any) -> str | None:
    """Why ``positive=True`` is not fitted to X on a GPU: the library does it on the CPU, to which it takes X itself."""
    return "positive coefficients are fitted on the CPU" if estimator.positive and lies_on_gpu(X) else None


def columns(y: Any) -> Any:
    """The targets one after the other."""
    return [y] if y.ndim == 1 else y.reshape(len(y), -1).T


class LinearRegression(SeveralTargets, _peer.LinearRegression):
    """Ordinary least squares: :class:`sklearn.linear_model.LinearRegression` by warpfuse.

    Parameters and attributes are scikit-learn's, but for ``rank_`` and ``singular_``, which only a singular value
    decomposition of X gives. Of linearly dependent columns a solution near zero is taken.

    See Also
    --------
    Ridge : with an l2 penalty.

    Examples
    --------
    >>> from warpfuse import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.coef_.round(6), model.intercept_.round(6)
    (array([2.]), np.float64(1.0))
    """

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        return positive_refusal(self, X)

    def _controls(self) -> dict[str, Any]:
        return {
            # scikit-learn's method is direct: all digits that iterations give.
            "tol": getattr(self, "tol", 1e-6),
            "most_tol": 1e-8,
            "max_iter": 1000,
            "fit_intercept": self.fit_intercept,
        }

    def _objective(self) -> tuple[str, dict[str, Any]]:
        return "ridge", {"alpha": 0.0, "positive": bool(self.positive)}

    def _fit_served(self, X: Any, y: Any, weights: Any) -> None:
        name, params = self._objective()
        self._solve_targets(name, [params] * len(columns(y)), X, y, weights)


class Ridge(SeveralTargets, _peer.Ridge):
    """Least squares with an l2 penalty: :class:`sklearn.linear_model.Ridge` by warpfuse.

    Parameters and attributes are scikit-learn's. ``solver`` is accepted and changes nothing; ``solver_`` is the one
    that was requested, and ``"sparse_cg"`` for ``"auto"``.

    Examples
    --------
    >>> from warpfuse import Ridge
    >>> Ridge(alpha=2.0).fit([[0.0], [1.0], [2.0]], [0.0, 2.0, 4.0]).coef_.round(6)
    array([1.])
    """

    _numbers: ClassVar[dict[str, tuple[float, float]]] = {**LinearFit._numbers, "alpha": ANY}

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if self.positive:
            return "solver is for any coefficients" if self.solver not in ("auto", "lbfgs") else positive_refusal(self, X)
        if self.solver == "lbfgs":
            return "solver='lbfgs' is for positive coefficients"
        if sparse.issparse(X) and self.fit_intercept and self.solver not in ("auto", "lsqr", "sag", "sparse_cg"):
            return f"scikit-learn refuses sparse X with an intercept and solver={self.solver!r}"
        return None

    def _controls(self) -> dict[str, Any]:
        return {
            "tol": self.tol,
            "max_iter": self.max_iter or 1000,
            "fit_intercept": self.fit_intercept,
        }

    def _objective(self) -> tuple[str, dict[str, Any]]:
        return "ridge", {"alpha": float(self.alpha), "positive": bool(self.positive)}

    def _fit_served(self, X: Any, y: Any, weights: Any) -> None:
        takes_long = self.max_iter is None and self.tol > 1e-4 and self.fit_intercept and sparse.issparse(X)
        if self.solver == "sag" and takes_long:
            # scikit-learn's advice, at scikit-learn's condition: the script may run without warpfuse another time.
            warn(
                '"sag" solver requires many iterations to fit an intercept with sparse inputs, and is not used by warpfuse.'
                ' Set the solver to "auto" or "sparse_cg", which scikit-learn advises, too.'
            )
        count = len(columns(y))
        positive = bool(self.positive)
        per_target = [{"alpha": alpha, "positive": positive} for alpha in self._penalties(count)]
        solutions = self._solve_targets("ridge", per_target, X, y, weights)
        if count == 1 and self.coef_.ndim == 2:
            self.coef_ = self.coef_[0]
        self._tell_of([s.n_iter for s in solutions])

    def _is_repeatable(self) -> bool:
        # With "sag" there may be something to say of sparse X, by the tolerance.
        return not self.positive and self.solver != "sag"

    def _keep(self, X: Any, y: Any, found: Any, weights: Any = None) -> None:
        super()._keep(X, y, found, weights)
        self._tell_of([found.n_iter])

    def _tell_of(self, iterations: list[int]) -> None:
        self.n_iter_ = np.array(iterations, dtype=np.int32)
        self.solver_ = "sparse_cg" if self.solver == "auto" else self.solver

    def _penalties(self, count: int) -> list[float]:
        """One for each target."""
        if isinstance(self.alpha, (int, float)):
            return [float(self.alpha)] * count
        alphas = np.asarray(self.alpha, dtype=np.float64).ravel()
        if alphas.size not in (1, count):
            raise ValueError(
                f"Number of targets and number of penalties do not correspond: {alphas.size} != {count}"
            )
        return [float(alpha) for alpha in np.broadcast_to(alphas, count)]
