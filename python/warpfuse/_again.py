"""The short way of a fit that was fitted before with other numbers: small plain arrays, the same parameters.

What the long way does in some thirty functions takes 20 to 40 microseconds where caches are warm, and several times as long
where another fit has emptied them. Whatever is not as plain as this takes the long way, and so does everything that goes
wrong, so that messages are scikit-learn's.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ._config import device_of_small
from ._plain import MANY, names_of

__all__ = ["LARGEST", "fitted_again", "prepare"]

#: Elements and columns of the largest X that goes the short way: its values are looked at by one core, and losses with kinks
#: are fitted to at most that many columns.
LARGEST = (MANY, 1000)

#: What was fitted last of a class, with as many sets of parameters as are kept.
_prepared: dict[type, tuple[Any, ...]] = {}
_KEPT = 4


def fitted_again(estimator: Any, X: Any, y: Any, entries: int = 0) -> bool:
    """Fits and sets all attributes, if parameters and arrays are as plain as they have to be, on the processor: ``entries`` are
    those of what is read instead of X, if that is larger."""
    prepared = _prepared.get(type(estimator))
    if prepared is None:
        return False
    device = device_of_small(entries)
    if device is None:
        return False
    try:
        for one in prepared:
            found = one.fit(estimator.__dict__, X, y, device)
            if found is not None:
                solution, classes = found
                if classes is not None:
                    estimator.classes_ = classes
                estimator._keep(X, y, solution)
                return True
    except ValueError:
        # The long way says it in scikit-learn's words.
        pass
    return False


def prepare(estimator: Any, X: Any, make: Callable[[dict[str, Any]], Any]) -> None:
    """Has the next fit with these parameters take the short way, if X says that it may; ``make`` is given the parameters."""
    if type(X) is not np.ndarray or X.size > LARGEST[0]:
        return
    of = type(estimator)
    values = {name: getattr(estimator, name) for name in names_of(of)}
    _prepared[of] = (make(values), *_prepared.get(of, ())[: _KEPT - 1])
