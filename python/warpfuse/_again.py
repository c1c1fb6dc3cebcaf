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

#: What was fitted last of a class, by its parameters and what else it depends on; as many as are kept.
_prepared: dict[type, dict[tuple[Any, ...], Any]] = {}
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
        for one in prepared.values():
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


def prepare(estimator: Any, X: Any, make: Callable[[dict[str, Any]], Any], *also: Any) -> None:
    """Has the next fit with these parameters take the short way, if X says that it may and the library is who fits them; ``make``
    is given the parameters, and depends on ``also`` besides."""
    if type(X) is not np.ndarray or X.size > LARGEST[0] or estimator._refusal(X) is not None:
        return
    of = type(estimator)
    values = {name: getattr(estimator, name) for name in names_of(of)}
    key = (*also, *map(type, values.values()), *values.values())
    kept = _prepared.get(of, {})
    try:
        is_new = key not in kept
    except TypeError:
        # What cannot be a key may change in its place.
        return
    if is_new:
        _prepared[of] = {key: make(values), **dict(list(kept.items())[: _KEPT - 1])}
