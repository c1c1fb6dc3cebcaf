"""X that is uploaded once, and the way of arrays into the library."""

import os
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from . import _native
from ._config import device_for, members_here, open_device
from ._lent import borrowed, lies_on_gpu

#: Reads of X that a matrix which is to be fitted several times is prepared for.
EVALUATIONS = 200
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def native(X: Any) -> Any:
    """X as the library takes it: an array in C or Fortran order, or the arrays of a CSR matrix in canonical form.

    Nothing is copied if X is in that form already, here or in the library, which borrows the arrays.
    """
    if type(X) is np.ndarray and X.dtype in _FLOATS and X.flags.forc and X.flags.aligned:
        return X
    if not sparse.issparse(X):
        X = np.asarray(X)
        order: Literal["F", "C"] = "F" if X.flags.fnc and X.ndim == 2 else "C"
        return np.require(X, dtype=_float_type(X.dtype), requirements=[order, "A"])
    X = X.tocsr()
    if not _is_canonical(X):
        # SciPy sorts without a look at offsets and indices, which may lead out of its memory; its check drops what is behind.
        X = X.copy()
        X.check_format(full_check=True)
        X.sum_duplicates()
    data = np.require(X.data, dtype=_float_type(X.data.dtype), requirements=["C", "A"])
    return data, _index_array(X.indices), _index_array(X.indptr), tuple(X.shape)


def _is_canonical(X: Any) -> bool:
    """Whether columns ascend in each row, and offsets within the indices: SciPy keeps what it has found, but takes one core to
    find it, and reads whatever offsets lead to."""
    known = vars(X).get("_has_canonical_format")
    if known is None:
        known = _native.is_canonical(X.indptr, X.indices)
        if known:
            X.has_canonical_format = True
    return bool(known)


def _float_type(dtype: Any) -> Any:
    """float32 for float16 and float32, float64 for everything else."""
    return np.float32 if dtype in (np.float16, np.float32) else np.float64


def _index_array(indices: Any) -> Any:
    if indices.dtype not in (np.int32, np.int64):
        indices = indices.astype(np.int64)
    return np.require(indices, requirements=["C", "A"])


def entries(X: Any) -> int:
    """Stored entries."""
    return int(X.size if type(X) is np.ndarray or not sparse.issparse(X) else X.nnz)


def _device(name: str | None, size: int) -> _native.Device:
    """The device of this name, or that of a fit on as many entries."""
    members = members_here()
    if name is not None:
        if members is not None:
            raise ValueError(f"device={name!r}: processes that share rows have devices by the setting; use set_config(device=...)")
        return open_device(name)
    return device_for(size) if members is None else members._device()


class Dataset:
    """X on its device: uploaded once, and fitted as often as one likes.

    Every estimator of warpfuse takes it in the place of X.

    Parameters
    ----------
    X : ndarray, CSR matrix or anything that converts to them, of shape (n_samples, n_features)
        float32 and float64 stay what they are, other types become float64 (float16: float32). CSC and COO matrices
        are converted to CSR. An array of CuPy, PyTorch or another library on a GPU, or a CSR matrix of the first two, is
        read where it lies, and kept until the dataset is gone. In a block of :func:`warpfuse.group` the rows of this process.
    device : str, optional
        Where to; as the setting ``device`` of :func:`set_config` otherwise.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    nnz : int
        Stored entries.
    device : str
    target : ndarray or None
        Targets of a file; see :meth:`from_file`.
    feature_names_in_ : ndarray of str
        Only where X is a frame whose columns all have names.

    Examples
    --------
    >>> import numpy as np
    >>> from warpfuse import Dataset, Ridge
    >>> data = Dataset(np.array([[0.0], [1.0], [2.0]]))
    >>> for alpha in (1.0, 2.0):
    ...     print(Ridge(alpha=alpha).fit(data, [0.0, 2.0, 4.0]).coef_.round(3))
    [1.333]
    [1.]
    """

    def __init__(self, X: Any, *, device: str | None = None) -> None:
        if lies_on_gpu(X):
            self._stay(X, device)
            return
        from sklearn.utils import check_array
        from sklearn.utils.validation import _get_feature_names

        names = _get_feature_names(X)
        if names is not None:
            self.feature_names_in_ = names
        members = members_here()
        # Of processes that share rows one may have none.
        least = 1 if members is None else 0
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=least)
        on = _device(device, entries(X))
        self._hold(_native.Dataset(native(X), on, EVALUATIONS))

    def _stay(self, X: Any, device: str | None) -> None:
        """X on a GPU is read where it lies."""
        x, where = borrowed(X)
        if device not in (None, "auto", where) and not (device == "cuda" and where.startswith("cuda:")):
            raise ValueError(f"X lies on {where}, and device={device!r} was requested: move it there first")
        self._hold(_native.Dataset(x, open_device(where), 0))

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        dtype: Any = np.float64,
        device: str | None = None,
        n_features: int | None = None,
        target: str | int | None = None,
        cache: bool = False,
    ) -> "Dataset":
        """X of a file in LIBSVM, Matrix Market, CSV, ``.npy`` or ``.npz`` format, also compressed by gzip or zstd.

        Parameters
        ----------
        path : path-like
        dtype : {np.float64, np.float32}, default=np.float64
        device : str, optional
            Where to; as the setting ``device`` of :func:`set_config` otherwise, whose "auto" counts the bytes of the
            file.
        n_features : int, optional
            Columns of a sparse X, where the file may lack the last.
        target : str or int, optional
            The column of a CSV file, or the array of an npz file, that holds the targets.
        cache : bool, default=False
            Whether a text leaves a binary file next to it, which is read instead the next time.

        Returns
        -------
        Dataset
            With the targets as ``target``, or None.

        Notes
        -----
        In a block of :func:`warpfuse.group` each process has a part of the rows, and ``target`` is that of all. Of a LIBSVM or CSV
        text that is not compressed and has no ``cache``, and of a cache by its own name, each reads its part alone.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from warpfuse import Dataset, LogisticRegression
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.svm"
        >>> _ = file.write_text("1 1:0.5 3:2\\n-1 2:1\\n1 3:1\\n-1 1:1 2:2\\n")
        >>> data = Dataset.from_file(file)
        >>> data.shape, data.target
        ((4, 3), array([ 1., -1.,  1., -1.]))
        >>> LogisticRegression().fit(data, data.target).predict(data)
        array([ 1., -1.,  1., -1.])
        """
        if np.dtype(dtype) not in _FLOATS:
            raise ValueError(f"dtype must be float32 or float64, got {np.dtype(dtype).name}")
        if n_features is not None and n_features < 0:
            raise ValueError(f"n_features must be at least 0, got {n_features}")
        # A stored entry takes about as many bytes in a text as in memory.
        size = os.stat(path).st_size // 8
        on = _device(device, size)
        found, targets = _native.read_file(
            os.fspath(path),
            on,
            dtype=np.dtype(dtype).name,
            cache=cache,
            columns=n_features,
            target=None if target is None else str(target),
            evaluations=EVALUATIONS,
        )
        data = cls.__new__(cls)
        data._hold(found)
        data.target = targets
        return data

    def _hold(self, placed: _native.Dataset) -> None:
        self._native = placed
        self.target: NDArray[Any] | None = None
        self.shape: tuple[int, int] = self._native.shape
        self.dtype = np.dtype(self._native.dtype)
        self.nnz: int = self._native.nnz
        self.device: str = self._native.device

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        rows, cols = self.shape
        return f"<Dataset of {rows} x {cols} {self.dtype.name}, {self.nnz} entries, on {self.device}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Dataset lies on a device and cannot be pickled; give the worker X itself")

    def __sklearn_is_fitted__(self) -> bool:  # pragma: no cover - only so that checks fail with a clear message
        return False

    def decision(self, coef: NDArray[Any], intercept: NDArray[Any]) -> NDArray[Any]:
        """``X @ coef.T + intercept``, of shape (n_samples, k), for coefficients of shape (k, n_features)."""
        coef = np.ascontiguousarray(coef, dtype=np.float64)
        return self._native.decision(coef, np.ascontiguousarray(intercept, dtype=np.float64))
