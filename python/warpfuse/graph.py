"""Rankings of a graph's nodes."""

from typing import Any

import numpy as np

from . import _native
from ._config import device_for
from ._dataset import entries, native
from ._fit import _watch, placed_by
from ._warn import warn

__all__ = ["hits", "pagerank"]


def _graph(graph: Any) -> Any:
    from sklearn.utils import check_array

    if type(graph).__module__.partition(".")[0] == "networkx":
        import networkx

        graph = networkx.to_scipy_sparse_array(graph, format="csr", dtype=np.float64)
    return check_array(graph, accept_sparse="csr", dtype=[np.float64, np.float32])


def _warn(name: str, found: dict[str, Any]) -> None:
    if not found["converged"]:
        from sklearn.exceptions import ConvergenceWarning

        warn(
            f"{name} did not converge in {found['n_iter']} steps: the last changed the scores by {found['change']:.1e}."
            " Raise max_iter, or tol.",
            ConvergenceWarning,
        )


def hits(graph: Any, *, max_iter: int = 100, tol: float = 1e-8) -> tuple[Any, Any]:
    """Hubs and authorities (Kleinberg 1999): good hubs point to good authorities.

    Parameters
    ----------
    graph : sparse matrix, array or networkx graph of shape (n, n)
        Entry (i, j) is the weight of the edge from i to j, not negative.
    max_iter : int, default=100
    tol : float, default=1e-8
        Of the change of the authorities in the 2-norm.

    Returns
    -------
    hubs, authorities : ndarray of shape (n,)
        Each adds up to 1, as in networkx.

    Examples
    --------
    >>> import numpy as np
    >>> from warpfuse import hits
    >>> hubs, authorities = hits(np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))
    >>> hubs, authorities
    (array([0.5, 0.5, 0. ]), array([0., 0., 1.]))
    """
    X = _graph(graph)
    own, device = placed_by(X, lambda: device_for(entries(X)))
    found = _native.hits(native(own), device, tol=tol, max_iter=max_iter, watch=_watch(max_iter))
    _warn("hits", found)
    return found["hubs"], found["authorities"]


def pagerank(
    graph: Any,
    *,
    damping: float = 0.85,
    personalization: Any = None,
    max_iter: int = 100,
    tol: float = 1e-6,
) -> Any:
    """PageRank: how often a surfer who follows random edges visits each node.

    Parameters
    ----------
    graph : sparse matrix, array or networkx graph of shape (n, n)
        Entry (i, j) is the weight of the edge from i to j, not negative.
    damping : float, default=0.85
        The chance to follow an edge; networkx calls it ``alpha``.
    personalization : array-like of shape (n,), optional
        Where the surfer goes otherwise; all nodes alike by default.
    max_iter : int, default=100
    tol : float, default=1e-6
        Of the change of all scores together in the 1-norm.

    Returns
    -------
    ndarray of shape (n,)
        Scores that add up to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from warpfuse import pagerank
    >>> pagerank(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])).round(6)
    array([0.333333, 0.333333, 0.333333])
    """
    X = _graph(graph)
    weights = None if personalization is None else [float(w) for w in np.ravel(personalization)]
    own, device = placed_by(X, lambda: device_for(entries(X)))
    found = _native.page_rank(
        native(own),
        device,
        damping=damping,
        personalization=weights,
        tol=tol,
        max_iter=max_iter,
        watch=_watch(max_iter),
    )
    _warn("pagerank", found)
    return found["scores"]
