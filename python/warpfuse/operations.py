"""The fused product for your own solvers, and sums over kernels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from . import _native
from ._config import device_for, open_device
from ._dataset import entries, native
from ._lent import Namespace, lend, lies_on_gpu, matrix_of

__all__ = ["Matrix", "Plan", "kernel_sum", "plan", "reduce"]


class Matrix(LinearOperator):
    """X on a device, of shape (m, n): its products read X once.

    It is a :class:`scipy.sparse.linalg.LinearOperator`, so that it goes into ``lsqr``, ``svds``, ``cg`` and the like.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (m, n)
        float32 and float64 stay what they are, other types become float64. X of CuPy or PyTorch on a GPU is read where it
        lies; vectors are then given, and results returned, as arrays of that library there.
    device : str, optional
        Where to; as the setting ``device`` of :func:`set_config` otherwise.
    evaluations : int, default=0
        How many products are to come: from some tens on, a GPU stores a sparse X in a further form that is faster.

    Examples
    --------
    >>> import numpy as np
    >>> from warpfuse import Matrix
    >>> X = Matrix(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> X @ np.array([1.0, 1.0])
    array([3., 3.])
    >>> X.T @ np.array([1.0, 1.0])
    array([1., 5.])
    >>> X.fused(np.array([1.0, 1.0]), v=np.array([1.0, 0.5]))
    array([ 3. , 10.5])
    """

    def __init__(self, X: Any, *, device: str | None = None, evaluations: int = 0) -> None:
        self._native, self._namespace = self._placed(X, device, evaluations)
        self.device: str = self._native.device
        super().__init__(np.dtype(self._native.dtype), self._native.shape)

    @staticmethod
    def _placed(X: Any, device: str | None, evaluations: int) -> tuple[_native.Matrix, Namespace | None]:
        """X on its device, and the library that its vectors are of, if that is not NumPy."""
        if lies_on_gpu(X):
            placed, namespace = matrix_of(X)
            if device not in (None, "auto", placed.device):
                raise ValueError(f"X lies on {placed.device}, and device={device!r} was requested: move it there first")
            return placed, namespace
        from sklearn.utils import check_array

        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_features=0)
        on = open_device(device) if device is not None else device_for(entries(X))
        return _native.Matrix(native(X), on, evaluations), None

    def fused(
        self,
        y: Any,
        v: Any = None,
        z: Any = None,
        *,
        alpha: float = 1.0,
        beta: float = 1.0,
    ) -> NDArray[Any]:
        """``alpha * X.T @ (v * (X @ y)) + beta * z``, of n numbers, in one pass over X.

        Parameters
        ----------
        y : array-like of shape (n,)
        v : array-like of shape (m,), optional
            One weight per row.
        z : array-like of shape (n,), optional
        alpha, beta : float, default=1
        """
        y, v, z = self._vector("y", y, 1), self._vector("v", v, 0), self._vector("z", z, 1)
        return self._result(self._native.product("fused", y, v, z, alpha, beta))

    def objective(
        self, loss: str, y: Any, target: Any, v: Any = None, *, epsilon: float = 0.0
    ) -> tuple[float, NDArray[Any]]:
        """``sum(v * loss(X @ y, target))`` and its gradient by y, in one pass over X.

        Parameters
        ----------
        loss : {"squared", "logistic", "squared_hinge", "squared_epsilon_insensitive"}
            "squared" is half the square; targets of "logistic" are from 0 to 1, of "squared_hinge" -1 and 1.
        y : array-like of shape (n,)
        target : array-like of shape (m,)
        v : array-like of shape (m,), optional
        epsilon : float, default=0
            Of "squared_epsilon_insensitive".

        Examples
        --------
        >>> import numpy as np
        >>> from warpfuse import Matrix
        >>> X = Matrix(np.array([[1.0, 2.0], [0.0, 3.0]]))
        >>> X.objective("logistic", [0.0, 0.0], [1.0, 0.0])[1]
        array([-0.5,  0.5])
        """
        y, target, v = self._vector("y", y, 1), self._vector("target", target, 0), self._vector("v", v, 0)
        value, gradient = self._native.objective(loss, y, target, v, epsilon)
        return value, self._result(gradient)

    def plan(self, product: str = "fused") -> "Plan":
        """How a product is launched: which kernel, in which blocks, and why.

        Parameters
        ----------
        product : {"fused", "forward", "transposed"}, default="fused"
        """
        return Plan(product, self.shape, self.device, self._native.plan(product))

    def _matvec(self, y: Any) -> NDArray[Any]:
        y = y if lies_on_gpu(y) else np.ravel(y)
        return self._result(self._native.product("forward", self._vector("y", y, 1), None, None, 1.0, 0.0))

    def _rmatvec(self, p: Any) -> NDArray[Any]:
        p = p if lies_on_gpu(p) else np.ravel(p)
        return self._result(self._native.product("transposed", self._vector("p", p, 0), None, None, 1.0, 0.0))

    def __matmul__(self, y: Any) -> Any:
        return self._matvec(y) if lies_on_gpu(y) else super().__matmul__(y)

    @property
    def T(self) -> LinearOperator:
        """The transpose: ``X.T @ p``, of n numbers."""
        return _Transposed(self)

    def _result(self, found: Any) -> Any:
        """A result in the library that X is of."""
        return found if self._namespace is None else self._namespace.asarray(found)

    def _vector(self, name: str, values: Any, axis: int) -> Any:
        if values is None:
            return None
        if self._namespace is not None:
            return self._lent(self._namespace, name, values, axis)
        if np.iscomplexobj(values):
            raise TypeError(f"{name} is complex; warpfuse computes with real numbers")
        values = np.ascontiguousarray(values, dtype=self.dtype)
        if values.shape != (self.shape[axis],):
            raise ValueError(f"{name} must have the shape ({self.shape[axis]},), got {values.shape}")
        return values

    def _lent(self, there: Namespace, name: str, values: Any, axis: int) -> Any:
        """A vector for X on a GPU: there, or sent there once."""
        if not lies_on_gpu(values):
            values = there.asarray(np.asarray(values, dtype=self.dtype))
        if tuple(values.shape) != (self.shape[axis],):
            raise ValueError(f"{name} must have the shape ({self.shape[axis]},), got {tuple(values.shape)}")
        return lend(there.floats(values, self.dtype.name), there.where)

    def __repr__(self) -> str:
        return f"<Matrix of {self.shape[0]} x {self.shape[1]} {self.dtype.name} on {self.device}>"


class _Transposed(LinearOperator):
    """Xᵀ, which takes what X takes."""

    def __init__(self, X: Matrix) -> None:
        self._X = X
        super().__init__(X.dtype, X.shape[::-1])

    def _matvec(self, p: Any) -> Any:
        return self._X._rmatvec(p)

    def _rmatvec(self, y: Any) -> Any:
        return self._X._matvec(y)

    def __matmul__(self, p: Any) -> Any:
        return self._matvec(p) if lies_on_gpu(p) else super().__matmul__(p)

    @property
    def T(self) -> Matrix:
        """X."""
        return self._X


class Plan:
    """How a product is launched; it prints itself as text, and in a notebook as a table with the reasons.

    Attributes
    ----------
    product : str
    shape : tuple of int
    device : str
    text : str
        What is printed.
    figures : dict
        Kernel, blocks, threads, shared memory, registers and predicted microseconds, by name; empty on the processor.
    reasons : list of str
        One sentence each.

    Examples
    --------
    >>> import warpfuse
    >>> found = warpfuse.plan((1_000_000, 100), gpu="h200")
    >>> found.product, found.shape, "blocks" in found.figures
    ('fused', (1000000, 100), True)
    >>> "bound by memory bandwidth" in found.reasons[0]
    True
    >>> print(warpfuse.Matrix([[1.0, 2.0]], device="cpu").plan())
    fused of 1 x 2 on cpu: the processor needs no plan
    """

    def __init__(
        self,
        product: str,
        shape: tuple[int, int],
        device: str,
        text: str | None,
        figures: dict[str, Any] | None = None,
        reasons: Sequence[str] = (),
    ) -> None:
        self.product, self.shape, self.device = product, shape, device
        self.text = text or f"{self._title()}: the processor needs no plan"
        self.figures, self.reasons = dict(figures or {}), list(reasons)

    def _title(self) -> str:
        return f"{self.product} of {self.shape[0]} x {self.shape[1]} on {self.device}"

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        if not self.figures:
            return f"<pre>{escape(self.text)}</pre>"
        figures = self.figures.items()
        cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(_shown(value))}</td></tr>" for name, value in figures)
        reasons = "".join(f"<li>{escape(reason)}</li>" for reason in self.reasons)
        return f"<table><caption>{escape(self._title())}</caption>{cells}</table><ul>{reasons}</ul>"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def plan(
    X: Any, product: str = "fused", *, gpu: str = "auto", dtype: Any = np.float64, nnz: int | None = None
) -> Plan:
    """How a product with X would be launched on a GPU, and why; no GPU is needed.

    Parameters
    ----------
    X : ndarray, sparse matrix, :class:`Matrix` or tuple of two int
        A shape alone is planned for with ``dtype`` and ``nnz``. A Matrix tells the plan that it uses.
    product : {"fused", "forward", "transposed"}, default="fused"
    gpu : {"auto", "h200", "h100", "a100"}, default="auto"
        "auto" is the GPU of this machine, or an H200 where there is none.
    dtype : {np.float64, np.float32}, default=np.float64
        Of a shape; arrays have their own.
    nnz : int, optional
        Stored entries of a shape; it is dense without.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from warpfuse import plan
    >>> found = plan((4_000_000, 1_000), nnz=80_000_000, gpu="h200")
    >>> found.device, found.shape
    ('NVIDIA H200', (4000000, 1000))
    >>> found.figures["threads of a block"] % 32
    0
    """
    if isinstance(X, Matrix):
        return X.plan(product)
    if isinstance(X, tuple):
        shape = (int(X[0]), int(X[1]))
        if min(shape) < 1 or (nnz is not None and nnz < 0):
            raise ValueError(f"a shape of at least one row and one column is needed, and nnz of at least 0, got {X} and {nnz}")
        found = _native.plan_of_shape(*shape, nnz, np.dtype(dtype).name, product, gpu)
    else:
        from sklearn.utils import check_array

        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        shape, found = X.shape, _native.plan(native(X), product, gpu)
    text, device, reasons = found.pop("text"), found.pop("gpu"), found.pop("reasons")
    figures = {name: value for name, value in found.items() if value is not None}
    return Plan(product, shape, device, text, figures, reasons)


def kernel_sum(
    targets: Any,
    sources: Any,
    weights: Any,
    *,
    kernel: str = "rbf",
    length_scale: float = 1.0,
    device: str | None = None,
) -> NDArray[Any]:
    """``f[i] = sum(k(targets[i], sources[j]) * weights[j] for j)`` over all pairs; no matrix is formed.

    Parameters
    ----------
    targets : array-like of shape (m, d)
    sources : array-like of shape (n, d)
    weights : array-like of shape (n,)
    kernel : {"rbf", "laplacian", "matern12", "matern32", "matern52", "cauchy", "inverse_multiquadric"}
        "rbf" is ``exp(-r² / (2 length_scale²))``, "laplacian" ``exp(-|x - y|_1 / length_scale)``.
    length_scale : float, default=1
    device : str, optional

    Returns
    -------
    ndarray of shape (m,)

    Examples
    --------
    >>> from warpfuse import kernel_sum
    >>> kernel_sum([[0.0], [1.0]], [[0.0]], [2.0]).round(4)
    array([2.    , 1.2131])
    """
    arrays = [np.asarray(a) for a in (targets, sources, weights)]
    dtype = np.float32 if all(a.dtype == np.float32 for a in arrays) else np.float64
    t, s, w = (np.ascontiguousarray(a, dtype=dtype) for a in arrays)
    if t.ndim != 2 or s.ndim != 2 or w.ndim != 1:
        raise ValueError("targets of shape (m, d), sources of (n, d) and weights of (n,) are needed")
    on = open_device(device) if device is not None else device_for(len(t) * len(s))
    return _native.kernel_sum(t, s, w, on, kernel=kernel, length_scale=length_scale)


_REDUCTIONS = ("sum", "mean", "var", "norm1", "norm2", "min", "max", "argmin", "argmax", "count_nonzero")


def reduce(values: Any, operation: str = "sum", *, device: str | None = None) -> float | int:
    """A reduction of a whole array, the same bits on every device and in every run.

    Parameters
    ----------
    values : array-like
        float32 and float64 stay what they are, other types become float64; sums are formed in float64.
    operation : {"sum", "mean", "var", "norm1", "norm2", "min", "max", "argmin", "argmax", "count_nonzero"}
        "var" divides by the number of elements; indices count the elements in C order.
    device : str, optional
        Where; as the setting ``device`` of :func:`set_config` otherwise.

    Returns
    -------
    float, or int for indices and counts

    Examples
    --------
    >>> from warpfuse import reduce
    >>> reduce([[3.0, -4.0], [0.0, 0.0]], "norm2")
    5.0
    >>> reduce([3.0, -4.0, 1.0], "argmin")
    1
    """
    if operation not in _REDUCTIONS:
        raise ValueError(f"operation must be one of {', '.join(_REDUCTIONS)}, got {operation!r}")
    values = np.asarray(values)
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    flat = np.require(values.ravel(), dtype=dtype, requirements=["C", "A"])
    on = open_device(device) if device is not None else device_for(len(flat))
    found = _native.reduce(flat, operation, on)
    if found is None:
        raise ValueError(f"{operation} of no elements")
    return found
