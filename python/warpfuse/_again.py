"""The short way of a fit that was fitted before with other data: plain arrays or small CSR matrices, the same parameters but for
their numbers.

What the long way does in some thirty functions takes 20 to 40 microseconds where caches are warm, and several times as long
where another fit has emptied them. Whatever is not as plain as this takes the long way, and so does everything that goes
wrong, so that messages are scikit-learn's.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from ._config import device_again
from ._plain import MANY, names_of, remembered
from ._sklearn import between

__all__ = ["ANY", "fitted_again", "prepare"]

#: Columns of the largest X that goes the short way: losses with kinks are fitted to at most that many.
_COLUMNS = 1000
_CSR = (sparse.csr_matrix, sparse.csr_array)

#: For a parameter that may be any number.
ANY = (-np.inf, np.inf)

#: What was fitted last of a class, with as many sets of parameters as are kept.
_prepared: dict[type, tuple[Any, ...]] = {}
_KEPT = 4


def fitted_again(estimator: Any, X: Any, y: Any, *more: Any, of_pairs: bool = False) -> bool:
    """Fits and sets all attributes, if parameters and arrays are as plain as they have to be; pairs of rows are read instead of X
    where a fit is ``of_pairs``. More are weights, and the classes of which y is codes."""
    prepared = _prepared.get(type(estimator))
    is_sparse = type(X) in _CSR
    if prepared is None or not (is_sparse or type(X) is np.ndarray):
        return False
    try:
        device = device_again(X, of_pairs)
        if device is None:
            return False
        given = (X.data, X.indices, X.indptr, X.shape) if is_sparse else X
        for one in prepared:
            found = one.fit(estimator.__dict__, given, y, device, *more)
            if found is not None:
                solution, classes = found
                if classes is not None:
                    estimator.classes_ = classes
                if solution is not None:
                    estimator._keep(X, y, solution, *more[:1])
                return True
    except (TypeError, ValueError):
        # The long way says it in scikit-learn's words.
        pass
    return False


def prepare(estimator: Any, X: Any, make: Callable[[dict[str, Any], dict[str, Any], tuple[int, int, bool]], Any]) -> None:
    """Has the next fit with these parameters, or with other numbers of them, take the short way, if X says that it may and the
    library is who fits them; ``make`` is given the parameters, the numbers between which they may change, and how large X may
    be."""
    of: Any = type(estimator)
    is_sparse, attributes = type(X) in _CSR, vars(estimator)
    # Of a CSR matrix columns are looked at each time.
    elements = MANY if is_sparse else of._most_again
    if not (is_sparse or type(X) is np.ndarray) or X.size > elements or remembered(estimator) != ():
        return
    if estimator._refusal(X) is not None:
        return
    kept = _prepared.get(of, ())
    if not any(one.knows(attributes, is_sparse) for one in kept):
        values = {name: getattr(estimator, name) for name in names_of(of)}
        _prepared[of] = (make(values, _changing(of), (elements, _COLUMNS, is_sparse)), *kept[: _KEPT - 1])


@cache
def _changing(of: Any) -> dict[str, tuple[float, float, bool]]:
    """Between which numbers, the ends excluded, which parameters of a class change nothing but the library's number."""
    found = {}
    for name, (low, high, is_whole) in between(of).items():
        if name in of._numbers:
            least, most = of._numbers[name]
            found[name] = (max(low, least), min(high, most), is_whole)
    return found
