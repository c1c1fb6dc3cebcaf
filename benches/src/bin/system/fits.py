"""scikit-learn's logistic regression on each of many groups, on all cores: `fits.py GROUPS ROWS COLS`.

Prints one JSON object: milliseconds of all groups by the faster of two solvers and by each, every core with fits of its own
and one thread each. Data are drawn here: what is timed is the fits, from arrays that all processes share.
"""

import json
import os
import sys
import time
import warnings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import multiprocessing

import numpy as np
from sklearn.linear_model import LogisticRegression

X = Y = None


def fit(task):
    solver, first, last = task
    warnings.filterwarnings("ignore")
    for group in range(first, last):
        LogisticRegression(solver=solver, tol=1e-6, max_iter=1000).fit(X[group], Y[group])


def main():
    global X, Y
    groups, rows, cols = (int(word) for word in sys.argv[1:4])
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (groups, rows, cols)).astype(np.float32)
    w = rng.uniform(-1, 1, (groups, cols, 1)).astype(np.float32)
    Y = ((X @ w)[:, :, 0] > 0) ^ (rng.uniform(size=(groups, rows)) > 0.875)
    cores = len(os.sched_getaffinity(0))
    told = {"what": "scikit-learn, all cores", "groups": groups, "rows": rows, "cols": cols, "cores": cores}
    # Forked: the arrays are those of the parent.
    with multiprocessing.get_context("fork").Pool(cores) as pool:
        for solver in ("lbfgs", "newton-cholesky"):
            bounds = np.linspace(0, groups, 16 * cores + 1).astype(int)
            tasks = [(solver, a, b) for a, b in zip(bounds, bounds[1:])]
            pool.map(fit, [(solver, 0, 1)] * cores)
            begun = time.perf_counter()
            pool.map(fit, tasks, chunksize=1)
            told[f"{solver}_ms"] = 1e3 * (time.perf_counter() - begun)
    told["ms"] = min(told["lbfgs_ms"], told["newton-cholesky_ms"])
    print(json.dumps(told))


main()
