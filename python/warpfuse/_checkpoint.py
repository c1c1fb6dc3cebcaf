"""Fits that go on where they were interrupted."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from . import _native


@contextmanager
def checkpoint(path: str | os.PathLike[str], *, every: float = 60.0) -> Iterator[None]:
    """Have the fits inside a ``with`` block write how far they have got, and go on from there.

    Run the same program again after a crash, a kill or Ctrl-C: a fit that finds its file goes on where that one was, and
    on the CPU ends with the same bits as a fit that was never interrupted. Parameters of estimators stay as they are,
    so that ``clone`` and ``GridSearchCV`` know nothing of it.

    Parameters
    ----------
    path : path-like
        The file of the first fit of the block; that of the next is ``path`` with ``.1`` behind it, and so on. A file of
        another fit is a ``ValueError``. All are removed at the end of the block, unless it ends by an exception: keep
        what was learnt inside it.
    every : float, default=60.0
        Seconds between two files; 0 for one after each iteration.

    Notes
    -----
    Fits of this thread alone, in this process: not those of ``n_jobs`` in others. What scikit-learn has to fit, and X
    that lies on a GPU already of ``TruncatedSVD`` and ``PCA``, is not written.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import warpfuse
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 2.0, 4.0])
    >>> file = os.path.join(tempfile.mkdtemp(), "ridge.checkpoint")
    >>> with warpfuse.checkpoint(file, every=300):
    ...     model = warpfuse.Ridge(alpha=2.0).fit(X, y)
    >>> os.path.exists(file)
    False
    """
    _native.begin_checkpoint(os.fspath(path), float(every))
    is_complete = False
    try:
        yield
        is_complete = True
    finally:
        _native.end_checkpoint(is_complete)
