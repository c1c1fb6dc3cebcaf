"""Short ways round scikit-learn's checks, for what plainly passes them.

scikit-learn's checks of parameters, X and y take some 250 microseconds, more than a small fit. What is looked at here is
what they would find: anything that is not as plain as this takes the whole way, and so does everything that is wrong, so
that messages are scikit-learn's.
"""

import math
from collections.abc import Callable
from functools import cache
from operator import attrgetter, is_
from typing import Any

import numpy as np
from scipy import sparse

from . import _native

__all__ = [
    "MANY",
    "are_plain",
    "are_plain_classes",
    "is_finite",
    "is_large",
    "is_plain_matrix",
    "names_of",
    "remember",
    "remembered",
]

#: Elements from which on all cores take less time than NumPy, which takes one.
MANY = 100_000

#: Checks of :func:`sklearn.utils.validation.validate_data` that plain arrays pass, whatever their values.
_OF_PLAIN = frozenset({"accept_sparse", "dtype", "multi_output", "y_numeric"})
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_INDICES = (np.dtype(np.int32), np.dtype(np.int64))

#: Parameters of these types are what their values say.
_SCALARS = frozenset({bool, int, float, str, type(None), np.float64, np.int64, np.bool_})
_MOST_REMEMBERED = 4096
_remembered: set[tuple[Any, ...]] = set()
#: The valid values that a class had last, which are mostly the same objects.
_valid: dict[type, tuple[Any, ...]] = {}
#: What reads all parameters of a class at once.
_readers: dict[type, Callable[[Any], tuple[Any, ...]]] = {}


def are_plain(X: Any, y: Any, how: dict[str, Any]) -> bool:
    """Whether scikit-learn's checks would give X and y back as they are: contiguous, finite, of numbers, as many rows.

    Values of large arrays are not looked at: the library does.
    """
    if type(X) is np.ndarray and how.keys() <= _OF_PLAIN and _native.are_plain(X, y, MANY):
        return True
    return (
        type(y) is np.ndarray
        and y.ndim == 1
        and (type(X) is np.ndarray or sparse.issparse(X))
        and X.ndim == 2
        and X.shape[0] == len(y)
        and y.dtype.kind in ("fiub" if "y_numeric" in how else "fiubU")
        and how.keys() <= _OF_PLAIN
        and is_plain_matrix(X)
        and (y.dtype.kind != "f" or is_large(y) or is_finite(y))
    )


def is_plain_matrix(X: Any) -> bool:
    """Whether scikit-learn's checks would give X back as it is, whatever the values of a large one."""
    if type(X) in (sparse.csr_matrix, sparse.csr_array):
        return _is_plain_csr(X)
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.size > 0
        and X.dtype in _FLOATS
        and X.flags.forc
        and X.flags.aligned
        and (is_large(X) or is_finite(X))
    )


def _is_plain_csr(X: Any) -> bool:
    """Small ones that are to be sorted, or have values twice, take the whole way."""
    return (
        X.ndim == 2
        and min(X.shape) > 0
        and X.dtype in _FLOATS
        and X.indices.dtype == X.indptr.dtype
        and X.indices.dtype in _INDICES
        and (is_large(X) or (_native.is_canonical(X.indptr, X.indices) is True and is_finite(X.data)))
    )


def is_large(X: Any) -> bool:
    """Whether the library looks at the values, and NumPy need not."""
    return bool((X.size if type(X) is np.ndarray or not sparse.issparse(X) else X.nnz) > MANY)


def is_finite(values: Any) -> bool:
    """Whether all are: by the library where they are contiguous floats, else by their sum, and a sum that overflows is left to
    those who look at each element."""
    found = _native.is_finite(values)
    if found is not None:
        return bool(found)
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(values.sum())


def are_plain_classes(y: Any, classes: Any) -> bool:
    """Whether there is nothing for scikit-learn to say of y, of which these are the classes: far fewer than rows."""
    return type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "fiubU" and 2 * len(classes) <= len(y)


def remembered(estimator: Any) -> tuple[Any, ...] | None:
    """What :func:`remember` is to keep once the estimator's parameters have been found valid; ``()`` where they have been.

    None where a parameter is more than a number or a name.
    """
    of: Any = type(estimator)
    read = _readers.get(of)
    if read is None:
        read = _readers[of] = _reader(names_of(of))
    values = read(estimator)
    last = _valid.get(of)
    if last is not None and all(map(is_, values, last)):
        return ()
    types = tuple(map(type, values))
    if not _SCALARS.issuperset(types):
        return None
    key = (of, types, values)
    if key not in _remembered:
        return key
    _valid[of] = values
    return ()


@cache
def names_of(of: Any) -> tuple[str, ...]:
    """The names of a class's parameters, for which scikit-learn reads its signature each time."""
    return tuple(of._get_param_names())


def _reader(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda estimator: tuple(getattr(estimator, name) for name in names)


def remember(key: tuple[Any, ...] | None) -> None:
    """That parameters are valid."""
    if key:
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
        _remembered.add(key)
