"""Arrays of CuPy, PyTorch and other libraries that lie on a GPU: borrowed there, results given back there.

A dense array in C order and a CSR matrix, of float32 or float64, are read where they lie. Everything else becomes that on
its device, by its own library: other orders and alignments, other types (float16 becomes float32, integers float64), COO
and CSC matrices, indices that repeat.
"""

import sys
from typing import Any

import numpy as np
from scipy import sparse

from . import _native
from ._config import get_config, members_here, open_device

__all__ = ["Namespace", "borrowed", "device_of", "lend", "lies_on_gpu", "matrix_of", "namespace_of", "to_host"]

#: Bytes that kernels load at once.
_ALIGNMENT = 16
#: DLPack's number of CUDA devices.
_DLPACK_CUDA = 2
#: What is on the host without a look.
_OF_HOST = frozenset({np.ndarray, list, float, np.float64, np.float32, type(None)})


def lies_on_gpu(array: Any) -> bool:
    """Whether an array, or the arrays of a sparse matrix, lie on a GPU."""
    kind = type(array)
    if kind in _OF_HOST or sparse.issparse(array):
        return False
    root = kind.__module__.partition(".")[0]
    if root == "torch":
        return bool(getattr(array, "is_cuda", False))
    if root in ("cupy", "cupyx"):
        return True
    if hasattr(array, "__cuda_array_interface__"):
        return True
    try:
        return hasattr(array, "__dlpack_device__") and int(array.__dlpack_device__()[0]) == _DLPACK_CUDA
    except (BufferError, RuntimeError, ValueError):
        return False


class Namespace:
    """The library and the device of an array: where results go. ``where`` is the device's name to warpfuse, where it is needed."""

    def __init__(self, array: Any, where: str = "") -> None:
        self.where = where
        self.root = type(array).__module__.partition(".")[0].replace("cupyx", "cupy")
        of_namespace = getattr(array, "__array_namespace__", None)
        self.xp: Any = sys.modules.get(self.root) if self.root in ("cupy", "torch") else None
        if self.xp is None and of_namespace is not None:
            self.xp = of_namespace()
        self.device: Any = getattr(array, "device", None)

    def asarray(self, values: Any) -> Any:
        """A result of warpfuse, or an array of NumPy, as an array of the library on the device."""
        if self.root == "torch":
            return self.xp.as_tensor(values, device=self.device)
        if self.root == "cupy":
            with self.device:
                return self.xp.asarray(values)
        # A library without functions gets what it can borrow itself.
        return values if self.xp is None else self.xp.asarray(values)

    def floats(self, array: Any, dtype: str) -> Any:
        """The array, contiguous and of this type, on the device."""
        if self.root == "torch":
            return _aligned(array.to(getattr(self.xp, dtype)).contiguous())
        if self.xp is None:
            return array
        return _aligned(self.xp.ascontiguousarray(array, dtype=dtype))


def namespace_of(array: Any, where: str = "") -> Namespace:
    """The namespace of an array on a GPU, or of the arrays of a CuPy matrix."""
    return Namespace(array.data if type(array).__module__.startswith("cupyx.") else array, where)


def to_host(array: Any) -> Any:
    """An array as one of NumPy; what is of the host already stays what it is."""
    if array is None or not lies_on_gpu(array):
        return array
    root = type(array).__module__.partition(".")[0]
    if root == "torch":
        return array.detach().cpu().numpy()
    if hasattr(array, "get"):
        return array.get()
    if hasattr(array, "numpy"):
        return array.numpy()
    return np.asarray(array)


def device_of(array: Any) -> str:
    """The name of the device that an array lies on, which must be where fits are to run."""
    if members_here() is not None:
        raise ValueError("processes share rows of the host: give the array as one of NumPy, or leave the block of warpfuse.group()")
    wanted = str(get_config()["device"])
    if wanted.startswith("emulator"):
        return wanted
    found = f"cuda:{_ordinal(array)}"
    if wanted in ("auto", "cuda", found):
        return found
    raise ValueError(
        f"the array lies on {found}, but device={wanted!r} is set: move it there, or set device to 'auto' or {found!r}"
    )


def _ordinal(array: Any) -> int:
    if type(array).__module__.startswith("cupyx."):
        array = array.data
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[1])
    device = getattr(array, "device", None)
    return int(getattr(device, "id", None) or getattr(device, "index", None) or 0)


def lend(array: Any, where: str) -> _native.DeviceArray:
    """An array as the library borrows it."""
    return _native.DeviceArray(array, open_device(where))


def borrowed(array: Any) -> tuple[Any, str]:
    """X as the library borrows it (an array, or data, indices, offsets and shape), and the device that it lies on."""
    if _is_sparse(array):
        data, indices, indptr, shape = _csr_parts(array)
        where = device_of(data)
        return (lend(data, where), lend(indices, where), lend(indptr, where), shape), where
    array = _dense(array)
    where = device_of(array)
    return lend(array, where), where


def _is_sparse(array: Any) -> bool:
    if type(array).__module__.startswith("cupyx."):
        return True
    return _layout(array) not in ("", "torch.strided")


def _layout(array: Any) -> str:
    is_torch = type(array).__module__.partition(".")[0] == "torch"
    return str(getattr(array, "layout", "")) if is_torch else ""


def _csr_parts(array: Any) -> tuple[Any, Any, Any, tuple[int, int]]:
    """Data, indices, offsets and shape of a sparse matrix of CuPy or PyTorch."""
    if not type(array).__module__.startswith("cupyx."):
        array = array.detach()
        if _layout(array) != "torch.sparse_csr":
            array = array.to_sparse_csr()
        data, (rows, cols) = array.values(), array.shape
        data = data.to(_float_name(str(data.dtype).rpartition(".")[2], array, "torch"))
        return _aligned(data), _aligned(array.col_indices()), _aligned(array.crow_indices()), (int(rows), int(cols))
    array = array if array.format == "csr" else array.tocsr()
    if not array.has_canonical_format:
        array = array.copy()
        array.sum_duplicates()
    data = array.data.astype(_float_name(array.dtype.name, array), copy=False)
    rows, cols = array.shape
    return _aligned(data), _aligned(array.indices), _aligned(array.indptr), (int(rows), int(cols))


def _float_name(name: str, array: Any, library: str = "") -> Any:
    """The type that values of this type are read as."""
    if name.startswith("complex"):
        raise ValueError("Complex data not supported")
    wanted = "float32" if name in ("float16", "float32", "bfloat16") else "float64"
    return getattr(sys.modules[library], wanted) if library else wanted


def _dense(array: Any) -> Any:
    """A matrix whose rows lie one after the other; itself where it is one."""
    if len(array.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(array.shape)}D array instead: reshape your data either using"
            " array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it contains a single"
            " sample."
        )
    root = type(array).__module__.partition(".")[0]
    if root == "torch":
        array = array.detach()
        name = str(array.dtype).rpartition(".")[2]
        return _aligned(array.to(_float_name(name, array, "torch")).contiguous())
    namespace = namespace_of(array)
    if namespace.xp is None or not hasattr(namespace.xp, "ascontiguousarray"):
        return array
    name = _float_name(str(np.dtype(array.dtype)), array)
    return _aligned(namespace.xp.ascontiguousarray(array, dtype=name))


def _aligned(array: Any) -> Any:
    """The array, or a copy on its device where kernels could not load 16 bytes at once."""
    if hasattr(array, "data_ptr"):
        return array if array.data_ptr() % _ALIGNMENT == 0 else array.clone()
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None or interface["data"][0] % _ALIGNMENT == 0:
        return array
    return array.copy()


def matrix_of(X: Any) -> tuple[_native.Matrix, Namespace]:
    """X on its device for products, and where their results go."""
    x, where = borrowed(X)
    return _native.Matrix(x, open_device(where), 0), namespace_of(X, where)
