"""One fit: arrays to the library, its answer and its warnings back."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from . import _native
from ._config import device_for, members_here, open_device, setting
from ._dataset import EVALUATIONS, Dataset, entries, native
from ._warn import warn

#: Numbers that the library reads without a copy.
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))

#: Those whose targets are codes of classes.
_CLASSIFIERS = frozenset({"linear_svc", "logistic_regression"})

#: What codes are read as without a copy.
_CODES = (np.dtype(np.uint32), np.dtype(np.uint8))

#: In scikit-learn's words, which programs look for.
_NOT_CONVERGED = {
    "sag": "The max_iter was reached which means the coef_ did not converge",
    "saga": "The max_iter was reached which means the coef_ did not converge",
    "newton-cholesky": "Newton solver did not converge after {} iterations",
}


class Problem:
    """X on its way to a device, and fits on it: several on the CPU, where that alone can (``on_cpu``).

    ``kept`` says that its products with X are wanted afterwards.
    """

    def __init__(self, X: Any, targets: int = 1, *, on_cpu: bool = False, kept: bool = False) -> None:
        self.dtype = np.dtype(X.dtype)
        self.shape = X.shape
        #: X where it has been placed, if it has.
        self.placed: Any = None
        if isinstance(X, Dataset):
            self.placed = X._native
            return
        X, on = placed_by(X, lambda: open_device("cpu") if on_cpu else device_for(entries(X)))
        if targets > 1 or kept:
            self.placed = _native.Dataset(native(X), on, EVALUATIONS if kept else 0)
        else:
            self._x, self._device = X, on

    def solve(
        self,
        name: str,
        params: dict[str, Any],
        y: Any,
        sample_weight: Any = None,
        start: tuple[Any, Any] | None = None,
        offset: Any = None,
    ) -> _native.Solution:
        """Fits the estimator of this name to one target."""
        y = _targets(name, y)
        if sample_weight is not None:
            sample_weight = np.ascontiguousarray(sample_weight, dtype=np.float64)
        if start is not None:
            coef, intercept = start
            start = (np.array(coef, np.float64, ndmin=2), np.array(intercept, np.float64, ndmin=1))
        if offset is not None:
            offset = np.ascontiguousarray(offset, dtype=np.float64)
        watch = _watch(params.get("max_iter"))
        if self.placed is not None:
            return self.placed.fit(name, params, y, sample_weight, start, watch, offset)
        x = native(self._x)
        return _native.fit(x, self._device, name, params, y, sample_weight, start, watch, offset)


def placed_by(X: Any, alone: Callable[[], _native.Device]) -> tuple[Any, _native.Device]:
    """The rows of X that this process computes with, and where: all of them on the device of ``alone``, unless processes share
    them."""
    members = members_here()
    return (X, alone()) if members is None else members._own(X)


def warn_unless_converged(estimator: Any, *solutions: _native.Solution) -> None:
    """A ConvergenceWarning with advice for the first solution that needs one.

    A fit that ended early is none where the gradient is as small as ``tol`` says: the library goes on.
    """
    for solution in solutions:
        if solution.converged:
            continue
        ratio = solution.gradient_ratio
        if ratio <= getattr(estimator, "tol", 0.0):
            continue
        solver = str(getattr(estimator, "solver", type(estimator).__name__))
        what = _NOT_CONVERGED.get(solver) or str(getattr(estimator, "_not_converged", f"{solver} failed to converge"))
        warn(
            f"{what.format(solution.n_iter)}: after {solution.n_iter} iterations of warpfuse the gradient is {ratio:.1e} of that at the start"
            f" ({solution.advice}). Increase the number of iterations (max_iter), or scale the data.",
            ConvergenceWarning,
        )
        return


def _targets(name: str, y: Any) -> Any:
    """y as the library takes it: codes of a classifier, else numbers of either precision, copied only where they are none."""
    if name in _CLASSIFIERS:
        if y.dtype in _CODES and y.flags.c_contiguous:
            return y
        return np.ascontiguousarray(y, dtype=np.uint32)
    y = np.asarray(y)
    return np.require(y, dtype=y.dtype if y.dtype in _FLOATS else np.float64, requirements=["C", "A"])


def _watch(total: int | None) -> Any:
    members = members_here()
    if members is not None and not members.is_first:
        return None
    progress = setting("progress")
    return _bar(total) if progress is True else progress


def _bar(total: int | None) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    bar = tqdm(total=None, unit="it", leave=False)

    def tell(iteration: int, objective: float | None, ratio: float) -> None:
        bar.update(iteration - bar.n)
        bar.set_postfix(objective=objective, gradient=f"{ratio:.1e}")

    return tell
