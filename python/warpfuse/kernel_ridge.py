"""Kernel ridge regression whose kernel matrix is never formed."""

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn import kernel_ridge as _peer
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from . import _native
from ._accelerated import Accelerated
from ._again import ANY, fitted_again, prepare
from ._config import config_context, device_for
from ._dataset import Dataset
from ._fit import _watch, placed_by
from ._lent import device_of, lies_on_gpu, namespace_of, to_host
from ._report import count_of
from ._sklearn import validated
from ._warn import warn

__all__ = ["KernelRidge"]

#: ‖y − (K + αI)·a‖ / ‖y‖ at which to stop: scikit-learn's solve is direct.
_TOLERANCE = 1e-11
_MAX_ITER = 10_000
#: What scikit-learn's checks of X and y are told: whole numbers keep their type.
_CHECKS = {"dtype": "numeric", "multi_output": True, "y_numeric": True}
#: Sums over fewer pairs are left to NumPy.
_PAIRS = 1_000_000


class KernelRidge(Accelerated, _peer.KernelRidge):
    """Kernel ridge regression: :class:`sklearn.kernel_ridge.KernelRidge` by warpfuse.

    Parameters and attributes are scikit-learn's. warpfuse fits ``kernel="rbf"`` and ``"laplacian"`` on dense X without
    sample weights, in memory for X alone; scikit-learn fits the rest.

    Examples
    --------
    >>> from warpfuse import KernelRidge
    >>> model = KernelRidge(kernel="rbf", gamma=0.5, alpha=1e-6).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
    >>> model.predict([[2.0]]).round(3)
    array([4.])
    """

    _numbers: ClassVar[dict[str, tuple[float, float]]] = {"alpha": ANY, "gamma": ANY}

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if self.kernel not in ("rbf", "laplacian"):
            return f"kernel={self.kernel!r} is not offered, 'rbf' and 'laplacian' are"
        if sample_weight is not None:
            return "sample weights are not offered"
        if isinstance(X, Dataset):
            return "it reads points of an array"
        if sparse.issparse(X):
            return "sparse points are not offered"
        alpha = self.alpha if isinstance(self.alpha, float) else np.ravel(self.alpha)
        if np.size(alpha) != 1 or not alpha > 0:
            return "one alpha above 0 is needed"
        if self.gamma is not None and not self.gamma > 0:
            return "a gamma above 0 is needed"
        return None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "KernelRidge":
        """Fit to dense X of shape (n_samples, n_features) and y of (n_samples,) or (n_samples, n_targets).

        Parameters
        ----------
        X : array-like
            Of an array of CuPy or PyTorch on a GPU the points cross once; ``dual_coef_`` is an array there.
        y : array-like
        sample_weight : array-like of shape (n_samples,), default=None
            With weights scikit-learn fits.

        Returns
        -------
        self : object
        """
        if sample_weight is not None or not fitted_again(self, X, y, of_pairs=True):
            self._fit_checked(X, y, sample_weight)
            prepare(self, X, self._prepared)
        return self

    @validated
    def _fit_checked(self, X: Any, y: Any, sample_weight: Any) -> "KernelRidge":
        """The long way."""
        if lies_on_gpu(X) and not self._left_to_sklearn(X, y, sample_weight):
            return self._fit_there(X, y)
        if self._falls_back(X, y, sample_weight):
            return super().fit(X, y, sample_weight)
        given = X, y
        X, y = self._validated(X, y, **_CHECKS)
        try:
            found = self._solutions(X, y)
        except ValueError:
            self._complain(*given, **_CHECKS)
            raise
        self.dual_coef_ = found[0] if y.ndim == 1 else np.stack(found, axis=1)
        self.X_fit_ = X
        return self

    def _solutions(self, X: Any, y: Any) -> list[Any]:
        """The dual coefficients of each target."""
        points = np.ascontiguousarray(X, dtype=np.float64)
        points, device = placed_by(points, lambda: device_for(len(X) ** 2))
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1).T
        return [self._solve(points, np.ascontiguousarray(t), device) for t in targets]

    def _prepared(self, values: dict[str, Any], between: dict[str, Any], largest: tuple[int, int, bool]) -> Any:
        served = count_of(type(self).__name__)
        return _native.PreparedKernelRidge(values, between, largest, served, **self._controls())

    def _keep(self, X: Any, y: Any, found: _native.KernelSolution) -> None:
        """Of the short way, which has set the attributes."""
        self._warn_unless_converged(found)

    def _fit_there(self, X: Any, y: Any) -> "KernelRidge":
        """Points of a GPU cross once to be centred; the results go where X lies."""
        namespace = namespace_of(X)
        with config_context(device=device_of(X)):
            KernelRidge.fit(self, to_host(X), to_host(y))
        self.X_fit_, self.dual_coef_ = X, namespace.asarray(self.dual_coef_)
        return self

    def _predict_there(self, X: Any) -> Any:
        namespace, kept = namespace_of(X), (self.X_fit_, self.dual_coef_)
        self.X_fit_, self.dual_coef_ = map(to_host, kept)
        try:
            with config_context(device=device_of(X)):
                return namespace.asarray(self.predict(to_host(X)))
        finally:
            self.X_fit_, self.dual_coef_ = kept

    def _controls(self) -> dict[str, Any]:
        """What the library is told besides X and y."""
        return {
            "kernel": self.kernel,
            "gamma": None if self.gamma is None else float(self.gamma),
            "alpha": float(np.ravel(self.alpha)[0]),
            "tol": _TOLERANCE,
            "max_iter": _MAX_ITER,
        }

    def _solve(self, points: Any, target: Any, device: Any) -> Any:
        found = _native.kernel_ridge(points, target, device, **self._controls(), watch=_watch(_MAX_ITER))
        self._warn_unless_converged(found)
        return found.dual_coef

    def _warn_unless_converged(self, found: _native.KernelSolution) -> None:
        if not found.converged and found.residual_ratio > 1e-8:
            warn(
                f"KernelRidge did not converge in {found.n_iter} iterations: {found.advice}. The residual is"
                f" {found.residual_ratio:.1e} of the targets; a larger alpha converges faster.",
                ConvergenceWarning,
            )

    def predict(self, X: Any) -> Any:
        """Predictions of shape (n_samples,) or (n_samples, n_targets)."""
        check_is_fitted(self)
        if lies_on_gpu(X):
            return self._predict_there(X)
        if lies_on_gpu(self.X_fit_):
            self.X_fit_, self.dual_coef_ = to_host(self.X_fit_), to_host(self.dual_coef_)
        served = self._refusal(self.X_fit_) is None
        if not served or sparse.issparse(X) or len(self.X_fit_) * _num_samples(X) < _PAIRS:
            return super().predict(X)
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        points = np.ascontiguousarray(self.X_fit_, dtype=np.float64)
        device = device_for(len(points) * len(X))
        sides = np.asarray(self.dual_coef_, np.float64).reshape(len(points), -1).T
        gamma = None if self.gamma is None else float(self.gamma)
        scale = _native.length_scale(self.kernel, gamma, points.shape[1])
        sums = [
            _native.kernel_sum(
                X, points, np.ascontiguousarray(side), device, kernel=self.kernel, length_scale=scale
            )
            for side in sides
        ]
        return sums[0] if self.dual_coef_.ndim == 1 else np.stack(sums, axis=1)
