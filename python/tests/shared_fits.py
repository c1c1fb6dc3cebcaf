"""Fits to rows that processes share, or that one has: what is learnt, as JSON of rank 0."""

import contextvars
import json
import os
import signal
import sys
import threading

import numpy as np
from scipy import sparse

import warpfuse
from warpfuse._config import members_here

rng = np.random.default_rng(5)
X = rng.normal(size=(301, 6))
y = X @ np.arange(6) + rng.normal(size=301)
labels = np.array(["no", "yes", "maybe"])[(np.abs(2 * X[:, 0] + rng.normal(size=301)) % 3).astype(int)]
weights = rng.integers(1, 4, size=301).astype(float)
S = sparse.random(301, 40, density=0.2, random_state=3, format="csr")
W = sparse.random(60, 60, density=0.1, random_state=3, format="csr")
learnt: dict[str, object] = {}


def keep(name, *values):
    learnt[name] = [np.asarray(value, dtype=float).ravel().tolist() for value in values]


with warpfuse.group() as members:
    learnt["size"] = members.size
    ridge = warpfuse.Ridge(alpha=2.0, tol=1e-10)
    for _ in range(2):
        # The second one could go the short way of a fit that is known, which shares nothing.
        ridge.fit(X, y)
    keep("ridge", ridge.coef_, ridge.intercept_)
    ridge.fit(X, y, sample_weight=weights)
    keep("weighted", ridge.coef_, ridge.intercept_)
    both = warpfuse.Ridge(alpha=2.0, tol=1e-10).fit(X, np.stack([y, -y], axis=1))
    keep("targets", both.coef_)
    classes = warpfuse.LogisticRegression(tol=1e-10).fit(X, labels)
    keep("classes", classes.coef_, classes.predict_proba(X))
    keep("sparse", warpfuse.PoissonRegressor(tol=1e-10).fit(S, np.abs(y)).coef_)
    kernel = warpfuse.KernelRidge(kernel="rbf", gamma=0.1).fit(X, y)
    keep("kernel", kernel.dual_coef_, kernel.predict(X))
    keep("svd", warpfuse.TruncatedSVD(2, random_state=0).fit(S).singular_values_)
    keep("graph", *warpfuse.hits(W, tol=1e-14), warpfuse.pagerank(W, tol=1e-14))
    # Rows that this process alone has, of which the last has none where there are several.
    step = -(-301 // max(1, members.size - 1))
    own = slice(members.rank * step, (members.rank + 1) * step)
    data, targets = warpfuse.Dataset(X[own]), members.gather(y[own])
    assert np.array_equal(targets, y)
    assert np.array_equal(members.gather(labels[own]), labels)
    assert data.shape == X.shape
    keep("own", warpfuse.Ridge(alpha=2.0, tol=1e-10).fit(data, targets).coef_)
    file = sys.argv[1]
    read = warpfuse.Dataset.from_file(file)
    keep("file", warpfuse.Ridge(alpha=0.5, tol=1e-10).fit(read, read.target).coef_)
    seen: list[int] = []
    with warpfuse.config_context(progress=lambda *_: seen.append(1)):
        warpfuse.PoissonRegressor().fit(S, np.abs(y))
    assert bool(seen) == members.is_first
    # Other threads are no members, even with the context of this one.
    others: list[object] = []
    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: others.append(context.run(members_here)))
    thread.start()
    thread.join()
    assert others == [None]
    if members.is_first:
        print(json.dumps(learnt))

# A process that is forked now says so, and does not wait for threads that it has not.
child = os.fork()
if child == 0:
    signal.alarm(30)
    try:
        warpfuse.Ridge().fit(X, y)
    except RuntimeError:
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0

# Afterwards each process is by itself.
keep("after", warpfuse.Ridge(alpha=2.0).fit(X[members.rank :], y[members.rank :]).coef_)
