"""Settings, and devices by name."""

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from . import _native

#: Entries of X from which on ``device="auto"`` takes a GPU. Below, starting the GPU costs more than the fit: loading
#: kernels takes a few tenths of a second once per process, in which one core reads this many entries a hundred times.
GPU_FROM_ENTRIES = 1_000_000

_DEFAULTS: dict[str, Any] = {
    "device": os.environ.get("WARPFUSE_DEVICE", "auto"),
    "fallback": os.environ.get("WARPFUSE_FALLBACK", "warn"),
    "progress": None,
}
_settings: ContextVar[dict[str, Any]] = ContextVar("warpfuse_settings")

_NONE: dict[str, Any] = {}

#: The processes that share fits in this thread: :class:`warpfuse._group.Members`. No context variable: threads may inherit these,
#: and fits of two threads that are shared at once would get each other's sums.
_here = threading.local()
_has_shared = False

#: Names of devices, those of the library's tests among them.
_DEVICE_NAMES = re.compile(r"auto|cpu|cuda(:\d+)?|emulator(:\d+){0,2}")

_FALLBACKS = ("warn", "silent", "error")


def get_config() -> dict[str, Any]:
    """The settings in use.

    Returns
    -------
    dict
        With the keys of :func:`set_config`.

    Examples
    --------
    >>> import warpfuse
    >>> sorted(warpfuse.get_config())
    ['device', 'fallback', 'progress']
    >>> with warpfuse.config_context(fallback="error"):
    ...     warpfuse.get_config()["fallback"]
    'error'
    """
    return {**_DEFAULTS, **_settings.get(_NONE)}


def setting(name: str) -> Any:
    """One of the settings in use."""
    here = _settings.get(_NONE)
    return here[name] if name in here else _DEFAULTS[name]


def members_here() -> Any:
    """The processes that share fits, or None."""
    return getattr(_here, "members", None)


@contextmanager
def sharing(members: Any) -> Iterator[None]:
    """Have fits inside a ``with`` block, of this thread, be shared by these processes."""
    global _has_shared
    before, _here.members, _has_shared = members_here(), members, True
    try:
        yield
    finally:
        _here.members = before


def set_config(
    *,
    device: str | None = None,
    fallback: str | None = None,
    progress: Callable[[int, float | None, float], object] | bool | None = None,
) -> None:
    """Change settings for the whole process.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda", "cuda:N"}, optional
        Where fits are computed. "auto", the default, takes the first GPU for X of a million entries and more, and the
        processor otherwise. The environment variable ``WARPFUSE_DEVICE`` sets the default, also of worker processes.
    fallback : {"warn", "silent", "error"}, optional
        What happens when scikit-learn has to fit, because warpfuse does not offer a parameter: a
        :class:`FallbackWarning` (the default), nothing, or a ``ValueError``. ``WARPFUSE_FALLBACK`` sets the default.
    progress : callable or bool, optional
        Called after each iteration with its number, the objective (None where it is not known) and what the tolerance
        is compared with. True shows a bar if ``tqdm`` is installed, False shows nothing.

    Examples
    --------
    >>> import warpfuse
    >>> warpfuse.set_config(device="cpu")
    >>> warpfuse.get_config()["device"]
    'cpu'
    >>> warpfuse.set_config(device="auto")
    """
    _DEFAULTS.update(_checked(device, fallback, progress))


@contextmanager
def config_context(
    *,
    device: str | None = None,
    fallback: str | None = None,
    progress: Callable[[int, float | None, float], object] | bool | None = None,
) -> Iterator[None]:
    """Change settings inside a ``with`` block, for this thread.

    Parameters
    ----------
    device, fallback, progress
        As in :func:`set_config`.

    Examples
    --------
    >>> import warpfuse
    >>> with warpfuse.config_context(device="cpu"):
    ...     warpfuse.get_config()["device"]
    'cpu'
    """
    changed = {**_settings.get(_NONE), **_checked(device, fallback, progress)}
    token = _settings.set(changed)
    try:
        yield
    finally:
        _settings.reset(token)


def _checked(device: str | None, fallback: str | None, progress: Any) -> dict[str, Any]:
    if device is not None and not (isinstance(device, str) and _DEVICE_NAMES.fullmatch(device)):
        raise ValueError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:N', got {device!r}")
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise ValueError(f"progress must be a function, True or False, got {progress!r}")
    if fallback is not None and fallback not in _FALLBACKS:
        raise ValueError(f"fallback must be one of {_FALLBACKS}, got {fallback!r}")
    if progress is False:
        progress = _silent
    given = {"device": device, "fallback": fallback, "progress": progress}
    return {name: value for name, value in given.items() if value is not None}


def _silent(iteration: int, objective: float | None, ratio: float) -> None:
    """Shows nothing."""


_open: dict[str, _native.Device] = {}
_lock = threading.Lock()
_forked = False


def device_for(entries: int) -> _native.Device:
    """The device that a fit on X of this many stored entries runs on."""
    name = setting("device")
    if name == "auto" and entries < GPU_FROM_ENTRIES:
        name = "cpu"
    return open_device(_own(name))


def device_again(X: Any, of_pairs: bool) -> _native.Device | None:
    """The device that a fit to X runs on, or the processor where one to all pairs of rows runs there: if it has been opened, and
    nobody watches or shares the fit; else None."""
    here = _settings.get(_NONE)
    named = here["device"] if "device" in here else _DEFAULTS["device"]
    watch = here["progress"] if "progress" in here else _DEFAULTS["progress"]
    if _forked or watch is not None or members_here() is not None:
        return None
    if named == "auto" and (len(X) ** 2 if of_pairs else X.size) < GPU_FROM_ENTRIES:
        named = "cpu"
    return None if of_pairs and named != "cpu" else _open.get(named)


def _own(name: str) -> str:
    """This process's device for a name: among processes with a GPU each, the GPU of its number."""
    members = members_here()
    return name if members is None or name == "cpu" else members.name_of(name)


def check_not_forked() -> None:
    """Refuses to go on in a process that was forked after a fit."""
    if _forked:
        raise RuntimeError(
            "warpfuse was used in this process before it was forked, and neither its threads nor a GPU's context"
            " survive a fork. Start workers by 'spawn' or 'forkserver' (multiprocessing.set_start_method), or use"
            " joblib's default backend, 'loky'."
        )


def open_device(name: str) -> _native.Device:
    """The device of this name, opened once."""
    check_not_forked()
    device = _open.get(name)
    if device is None:
        with _lock:
            device = _native.Device(name)
            if name == "auto" and not device.is_cuda:
                # There is one processor, whose bytes are counted in one place.
                device = _open.setdefault("cpu", device)
            device = _open.setdefault(name, device)
    return device


def memory(device: str = "auto") -> dict[str, int]:
    """What warpfuse holds on a device, and what crossed to and from it.

    Parameters
    ----------
    device : str, default="auto"
        "cpu", "cuda" or "cuda:N"; "auto" is the first GPU where there is one.

    Returns
    -------
    dict
        ``bytes`` that buffers hold now, ``kept_bytes`` that are kept for the next ones, ``peak_bytes`` that they held at
        most, ``lent_bytes`` of other libraries' arrays, ``sent_bytes`` and ``received_bytes`` that crossed so far, and
        ``free_bytes`` and ``total_bytes`` of the device where they are known.

    Examples
    --------
    >>> import warpfuse
    >>> warpfuse.memory("cpu")["peak_bytes"] >= 0
    True
    """
    _checked(device, None, None)
    return open_device(_own(device)).memory()


def _after_fork() -> None:
    global _forked
    _forked = bool(_open) or _has_shared


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
