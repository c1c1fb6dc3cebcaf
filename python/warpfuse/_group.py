"""Fits that several processes share."""

import atexit
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _config, _native
from ._config import setting, sharing

__all__ = ["Members", "group"]

#: Joined once: MPI, for one, can be begun once in a process.
_joined: "Members | None" = None
_lock = threading.Lock()

#: Whether this thread is in a block.
_here = threading.local()


class Members:
    """This process among those that share the fits of a block; see :func:`group`.

    Attributes
    ----------
    rank : int
        This process's number, from 0 on.
    size : int
        How many there are.
    """

    def __init__(self, native: _native.Group) -> None:
        self._native = native
        self._devices: dict[str, _native.Device] = {}
        self._has_failed = False
        self.rank: int = native.rank
        self.size: int = native.size

    def __repr__(self) -> str:
        return f"<Members: {self.rank} of {self.size}, {self._native.engine}>"

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which should print and write files."""
        return self.rank == 0

    def gather(self, array: Any) -> NDArray[Any]:
        """The arrays of all processes, one after the other along the first axis.

        Parameters
        ----------
        array : array-like
            Numbers, truths or text; of any length, the other axes alike.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import warpfuse
        >>> with warpfuse.group() as members:
        ...     members.gather([1.0, 2.0])
        array([1., 2.])
        """
        array = np.asarray(array)
        if array.ndim == 0 or array.dtype.hasobject:
            raise TypeError(f"an array of numbers, truths or text is needed, got {array.dtype} with {array.ndim} axes")
        written = io.BytesIO()
        np.save(written, array, allow_pickle=False)
        each = self._native.gather(written.getvalue())
        return np.concatenate([np.load(io.BytesIO(one), allow_pickle=False) for one in each])

    def name_of(self, device: str) -> str:
        """The name of this process's own device for a ``device``."""
        return self._native.name(device)

    def _device(self) -> _native.Device:
        """This process's device for the setting of that name."""
        _config.check_not_forked()
        name = setting("device")
        device = self._devices.get(name)
        if device is None:
            device = self._devices[name] = self._native.device(name)
        return device

    def _own(self, X: Any) -> tuple[Any, _native.Device]:
        """The rows that this process computes with of an X that all have, and where."""
        device = self._device()
        first, last = self._native.rows(X.shape[0], device)
        return X[first:last], device


@contextmanager
def group() -> Iterator[Members]:
    """Have the fits inside a ``with`` block be shared by the processes that ``torchrun``, ``mpirun`` or ``srun`` started.

    Every process runs the same program, fits the same estimators in the same order, and gets the same attributes. Each
    computes with its part of the rows: of X that all processes give whole, and of a :class:`warpfuse.Dataset` made inside the
    block the rows that this process gave, which need not be held by any other. y, weights and offsets are those of all rows.
    A process that nobody else was started with fits alone.

    Yields
    ------
    Members
        With ``rank``, ``size``, ``is_first``, and ``gather`` for arrays of which each process has a part.

    Notes
    -----
    With ``torchrun`` each process has the GPU of its number; with ``mpirun`` and ``srun`` the processor, or with
    ``device="cuda"`` a GPU of its machine. Shared are fits of linear models, kernel ridge regression, singular vectors and
    rankings; predictions and what scikit-learn has to fit are computed by each process for itself, and so are fits of other
    threads and of ``n_jobs``. Fits that need all rows in one place (quantiles, losses with kinks, solvers of the host) are a
    ``ValueError``. An exception that ends the block of one process is a ``RuntimeError`` in the others that names its rank.

    Examples
    --------
    ``mpirun -n 4 python train.py``, or ``torchrun --nproc-per-node 2 train.py``:

    >>> import numpy as np
    >>> import warpfuse
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 2.0, 4.0])
    >>> with warpfuse.group() as members:
    ...     model = warpfuse.Ridge(alpha=2.0).fit(X, y)
    ...     if members.is_first:
    ...         print(model.coef_.round(6))
    [1.]

    Where each process has rows of its own:

    >>> with warpfuse.group() as members:
    ...     data, targets = warpfuse.Dataset(X), members.gather(y)
    ...     model = warpfuse.Ridge(alpha=2.0).fit(data, targets)
    """
    if getattr(_here, "is_inside", False):
        raise RuntimeError("groups do not nest: leave the `with warpfuse.group():` block before the next")
    members = _join()
    _here.is_inside = True
    try:
        # One process shares with nobody.
        with sharing(members) if members.size > 1 else nullcontext():
            yield members
    except BaseException as error:
        if members.size > 1:
            members._has_failed = True
            members._native.fail(f"{type(error).__name__}: {error}")
        raise
    finally:
        _here.is_inside = False


def _join() -> Members:
    global _joined
    with _lock:
        if _joined is None:
            _joined = Members(_native.Group())
            atexit.register(_leave)
        return _joined


def _leave() -> None:
    """Nobody ends while what it sent is on its way."""
    global _joined
    members, _joined = _joined, None
    if members is None or members.size == 1 or members._has_failed or _config._forked:
        return
    try:
        members._native.barrier()
    except RuntimeError:
        # Another process has failed, and said so.
        pass
