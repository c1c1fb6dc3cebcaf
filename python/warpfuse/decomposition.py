"""Singular vectors and principal components of sparse and dense data; sparse X stays sparse, centred too."""

from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import decomposition as _peer
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _native, _report
from ._accelerated import Accelerated, shape_of
from ._config import device_for, open_device
from ._dataset import entries, native
from ._fit import _watch, placed_by
from ._lent import borrowed, lies_on_gpu, namespace_of, to_host
from ._sklearn import fit_context
from ._warn import warn

__all__ = ["PCA", "TruncatedSVD"]

#: What a fit leaves where X lies.
_ATTRIBUTES = ("components_", "explained_variance_", "explained_variance_ratio_", "mean_", "singular_values_")

#: ‖XᵀX·v − σ²v‖ / σ² at which to stop.
_TOLERANCES = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}
_MAX_ITER = 5_000


def _decompose(name: str, X: Any, components: int, *, centred: bool, random_state: Any) -> dict[str, Any]:
    if lies_on_gpu(X):
        x, where = borrowed(X)
        of_x, device = (x[0] if isinstance(x, tuple) else x), open_device(where)
        dtype = np.dtype(of_x.dtype)
    else:
        dtype = np.dtype(X.dtype)
        own, device = placed_by(X, lambda: device_for(entries(X)))
        x = native(own)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    found = _native.truncated_svd(
        x,
        device,
        components,
        centred=centred,
        tol=_TOLERANCES[dtype],
        max_iter=_MAX_ITER,
        seed=seed,
        watch=_watch(_MAX_ITER),
    )
    if not found["converged"]:
        warn(
            f"{name} did not converge in {found['n_iter']} products: the residual is {found['change']:.1e} of the"
            " eigenvalue. Ask for fewer components, or scale the columns.",
            ConvergenceWarning,
        )
    for key in ("components", "singular_values", "explained_variance", "explained_variance_ratio"):
        found[key] = found[key].astype(dtype, copy=False)
    if found["means"] is not None:
        found["means"] = found["means"].astype(dtype, copy=False)
    return found


def _left_there(estimator: Any, X: Any) -> None:
    """Results go to where X lies."""
    namespace = namespace_of(X)
    for name in _ATTRIBUTES:
        value = vars(estimator).get(name)
        if isinstance(value, np.ndarray):
            setattr(estimator, name, namespace.asarray(value))


def _back_on_host(estimator: Any) -> None:
    """Brings the results of a fit on a GPU to the host, for an X of the host."""
    for name in _ATTRIBUTES:
        value = vars(estimator).get(name)
        if value is not None and lies_on_gpu(value):
            setattr(estimator, name, to_host(value))


def _spread(estimator: Any, X: Any) -> Any:
    """``X @ components_`` on X's device."""
    check_is_fitted(estimator)
    components = estimator.components_
    return X @ (components if lies_on_gpu(components) else namespace_of(X).asarray(components))


def _projected(estimator: Any, X: Any) -> Any:
    """``X @ components_.T`` on X's device, without the host."""
    check_is_fitted(estimator)
    components = estimator.components_
    if X.shape[1] != components.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {components.shape[1]}"
            " features as input"
        )
    if not lies_on_gpu(components):
        components = namespace_of(X).asarray(components)
    return X @ components.T


class TruncatedSVD(Accelerated, _peer.TruncatedSVD):
    """The leading singular vectors: :class:`sklearn.decomposition.TruncatedSVD` by warpfuse.

    Parameters and attributes are scikit-learn's. ``algorithm``, ``n_iter``, ``n_oversamples`` and ``tol`` are accepted
    and change nothing: the vectors are exact to 1e-10, by Lanczos' method.

    Examples
    --------
    >>> import numpy as np
    >>> from warpfuse import TruncatedSVD
    >>> X = np.array([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    >>> TruncatedSVD(n_components=2).fit(X).singular_values_.round(6)
    array([3., 2.])
    """

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        shape = shape_of(X)
        if len(shape) != 2 or self.n_components >= min(shape):
            return "fewer components than rows and columns are needed"
        return None

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to X of shape (n_samples, n_features); the result is of (n_samples, n_components).

        Parameters
        ----------
        X : array-like or sparse matrix
            An array or a CSR matrix of CuPy or PyTorch on a GPU is read where it lies, and the results are arrays there.
        y : ignored

        Returns
        -------
        ndarray
        """
        if lies_on_gpu(X) and not self._left_to_sklearn(X, y, None):
            self._fit_there(X)
            return _projected(self, X)
        if self._falls_back(X):
            return super().fit_transform(X, y)
        _back_on_host(self)
        X = validate_data(
            self, X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], ensure_min_features=2
        )
        self._decomposed(X)
        return X @ self.components_.T

    def _decomposed(self, X: Any) -> None:
        found = _decompose(
            type(self).__name__, X, self.n_components, centred=False, random_state=self.random_state
        )
        self.components_ = found["components"]
        self.singular_values_ = found["singular_values"]
        self.explained_variance_ = found["explained_variance"]
        self.explained_variance_ratio_ = found["explained_variance_ratio"]

    def _fit_there(self, X: Any) -> None:
        _report.served(type(self).__name__)
        _back_on_host(self)
        self.n_features_in_ = int(X.shape[1])
        self._decomposed(X)
        _left_there(self, X)

    def transform(self, X: Any) -> Any:
        """X times the components, of shape (n_samples, n_components), where X lies."""
        if lies_on_gpu(X):
            return _projected(self, X)
        _back_on_host(self)
        return super().transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """X in the space of the columns, where X lies."""
        if lies_on_gpu(X):
            return _spread(self, X)
        _back_on_host(self)
        return super().inverse_transform(X)


class PCA(Accelerated, _peer.PCA):
    """Principal components: :class:`sklearn.decomposition.PCA` by warpfuse.

    Parameters and attributes are scikit-learn's. warpfuse serves a whole number of components below the rows and the
    columns of X, unless ``svd_solver="full"`` or ``"covariance_eigh"`` is requested; scikit-learn does the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from warpfuse import PCA
    >>> X = np.array([[-2.0, -2.0, 0.1], [-1.0, -1.0, 0.0], [1.0, 1.0, -0.1], [2.0, 2.0, 0.0]])
    >>> PCA(n_components=1).fit(X).explained_variance_ratio_.round(3)
    array([0.999])
    """

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if self.svd_solver in ("full", "covariance_eigh"):
            return f"svd_solver={self.svd_solver!r} is not offered"
        if not isinstance(self.n_components, Integral):
            return "a whole number of components is needed"
        shape, components = shape_of(X), int(self.n_components)
        if len(shape) != 2 or not 1 <= components < min(shape):
            return "fewer components than rows and columns are needed"
        if self.svd_solver == "auto" and not sparse.issparse(X) and components >= 0.8 * min(shape):
            return "nearly all components are a full decomposition"
        if sparse.issparse(X) and self.svd_solver == "randomized":
            return "scikit-learn refuses sparse X with svd_solver='randomized'"
        return None

    def _named_solver(self, X: Any) -> str:
        """The solver that was requested, and for "auto" the one that scikit-learn would take: Lanczos' serves for all."""
        if self.svd_solver != "auto":
            return self.svd_solver
        rows, cols = X.shape
        if sparse.issparse(X):
            return "arpack"
        if cols <= 1_000 and rows >= 10 * cols:
            return "covariance_eigh"
        is_small = max(rows, cols) <= 500
        return "randomized" if not is_small and self.n_components < 0.8 * min(rows, cols) else "full"

    def _fit(self, X: Any) -> Any:
        if self._falls_back(X):
            return super()._fit(X)
        _back_on_host(self)
        X = validate_data(
            self, X, dtype=[np.float64, np.float32], accept_sparse=("csr", "csc"), ensure_2d=True
        )
        self._fit_svd_solver = self._named_solver(X)
        self._decomposed(X)
        self.mean_ = np.asarray(X.mean(axis=0), dtype=X.dtype).ravel()
        return None, self.singular_values_, self.components_, X, False, np

    def _decomposed(self, X: Any) -> None:
        rows, cols = X.shape
        found = _decompose(
            type(self).__name__, X, int(self.n_components), centred=True, random_state=self.random_state
        )
        self.n_samples_, self.n_components_ = int(rows), int(self.n_components)
        self.components_, self.singular_values_ = found["components"], found["singular_values"]
        self.mean_ = found["means"]
        # The library divides by m, as scikit-learn's TruncatedSVD does; its PCA divides by m - 1.
        self.explained_variance_ = found["explained_variance"] * (rows / (rows - 1))
        self.explained_variance_ratio_ = found["explained_variance_ratio"]
        share = float(self.explained_variance_ratio_.sum())
        total = float(self.explained_variance_.sum()) / share if share > 0 else 0.0
        left = min(rows, cols) - self.n_components_
        self.noise_variance_ = max(0.0, total * (1.0 - share)) / left

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "PCA":
        """Fit to X of shape (n_samples, n_features).

        Parameters
        ----------
        X : array-like or sparse matrix
            An array or a CSR matrix of CuPy or PyTorch on a GPU is read where it lies, and the results are arrays there.
        y : ignored

        Returns
        -------
        self : object
        """
        if not lies_on_gpu(X) or self._left_to_sklearn(X, y, None):
            self._fit(X)
            return self
        _report.served(type(self).__name__)
        _back_on_host(self)
        self.n_features_in_, self._fit_svd_solver = int(X.shape[1]), "arpack"
        self._decomposed(X)
        _left_there(self, X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to X, and give its principal components of shape (n_samples, n_components), where X lies."""
        if lies_on_gpu(X) and not self._left_to_sklearn(X, y, None):
            return self.fit(X).transform(X)
        return super().fit_transform(X, y)

    def transform(self, X: Any) -> Any:
        """The principal components of X, of shape (n_samples, n_components), where X lies."""
        if not lies_on_gpu(X):
            _back_on_host(self)
            return super().transform(X)
        found = _projected(self, X)
        mean, components, scale = (self._there(X, name) for name in ("mean_", "components_", "explained_variance_"))
        found = found - components @ mean
        return found / self._root(scale) if self.whiten else found

    def inverse_transform(self, X: Any) -> Any:
        """X in the space of the columns, where X lies."""
        if not lies_on_gpu(X):
            _back_on_host(self)
            return super().inverse_transform(X)
        scale = self._there(X, "explained_variance_")
        return _spread(self, X * self._root(scale) if self.whiten else X) + self._there(X, "mean_")

    def _there(self, X: Any, name: str) -> Any:
        value = getattr(self, name)
        return value if lies_on_gpu(value) else namespace_of(X).asarray(value)

    @staticmethod
    def _root(variance: Any) -> Any:
        """Deviations to divide by; of components without variance next to nothing, as in scikit-learn."""
        least = float(np.finfo(np.dtype(str(variance.dtype).rpartition(".")[2])).eps)
        return (variance**0.5).clip(least, None)
