"""Who fitted what: warpfuse, or scikit-learn for a reason."""

import logging
import threading
from collections import Counter
from typing import Any

from . import _native
from ._config import get_config
from ._warn import warn

_log = logging.getLogger("warpfuse")
_lock = threading.Lock()
_served: dict[str, _native.Count] = {}
_fell_back: Counter[tuple[str, str]] = Counter()


class FallbackWarning(UserWarning):
    """scikit-learn fitted, because warpfuse does not offer what was requested.

    Examples
    --------
    >>> import warnings
    >>> import warpfuse
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> with warnings.catch_warnings(record=True) as said, warpfuse.config_context(fallback="warn"):
    ...     warnings.simplefilter("always", warpfuse.FallbackWarning)
    ...     model = warpfuse.LogisticRegression(solver="liblinear").fit(X, y)
    >>> print(said[0].message)
    scikit-learn fits this LogisticRegression: solver='liblinear' penalises the intercept and splits classes

    ``warpfuse.set_config(fallback="error")`` makes it a ``ValueError``, and ``"silent"`` nothing.
    """


def served(name: str) -> None:
    """Counts a fit by warpfuse."""
    count_of(name).add(1)


def count_of(name: str) -> _native.Count:
    """The fits of a class by warpfuse, which all threads add to."""
    found = _served.get(name)
    if found is None:
        with _lock:
            found = _served.setdefault(name, _native.Count())
    return found


def fell_back(name: str, reason: str) -> None:
    """Counts a fit by scikit-learn, and says so as the settings want it."""
    mode = get_config()["fallback"]
    if mode == "error":
        raise ValueError(f"{name} cannot be fitted by warpfuse: {reason}")
    with _lock:
        _fell_back[name, reason] += 1
    _log.info("scikit-learn fits %s: %s", name, reason)
    if mode == "warn":
        warn(f"scikit-learn fits this {name}: {reason}", FallbackWarning)


def fits() -> dict[str, dict[str, Any]]:
    """How many fits of each class warpfuse did, and how many scikit-learn did and why.

    Returns
    -------
    dict
        For each class ``{"served": int, "fell_back": {reason: int}}``.

    Examples
    --------
    >>> import warpfuse
    >>> _ = warpfuse.Ridge().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> warpfuse.fits()["Ridge"]["served"] >= 1
    True
    """
    with _lock:
        counts = {name: count.value for name, count in _served.items() if count.value}
        names = set(counts) | {name for name, _ in _fell_back}
        reasons = {name: {r: n for (of, r), n in _fell_back.items() if of == name} for name in names}
        return {name: {"served": counts.get(name, 0), "fell_back": reasons[name]} for name in sorted(names)}


def add(counts: dict[str, Any]) -> None:
    """Adds what :func:`fits` said in another process."""
    for name, of in counts.items():
        count_of(name).add(of["served"])
        with _lock:
            for reason, count in of["fell_back"].items():
                _fell_back[name, reason] += count


def forget() -> None:
    """Starts counting anew."""
    with _lock:
        for count in _served.values():
            count.clear()
        _fell_back.clear()
