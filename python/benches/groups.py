"""A logistic regression for each of many groups: `fit_groups`, and scikit-learn's fits one after the other on all cores.

scikit-learn fits a sample of the groups, and its time is what all of them would take. Prints a line of JSON for each.

    python groups.py RESULTS.jsonl [GROUPS ROWS COLUMNS]
"""

import json
import os
import sys
import time

import joblib
import numpy as np
from sklearn import linear_model as peers

import warpfuse
from warpfuse import _native

#: Groups that scikit-learn fits.
SAMPLE = 800


def timed(fit):
    begin = time.perf_counter()
    found = fit()
    return time.perf_counter() - begin, found


def ours(X, y, groups, runs=5):
    """Medians of the whole time and of what Python adds to it, in seconds, and the models."""
    wholes, added = [], []
    for _ in range(runs + 1):
        spent = _native.call_seconds()
        whole, models = timed(lambda: warpfuse.fit_groups(warpfuse.LogisticRegression(), X, y, groups))
        wholes.append(whole)
        added.append(whole - (_native.call_seconds() - spent))
    return np.median(wholes[1:]), np.median(added[1:]), models


def theirs(X, y, groups, count):
    """What all groups would take, in seconds, and the coefficients of some."""
    sample = range(0, count, max(1, count // SAMPLE))
    rows = len(X) // count
    own = [slice(group * rows, (group + 1) * rows) for group in sample]
    fit = joblib.delayed(lambda X, y: peers.LogisticRegression(tol=1e-6).fit(X, y).coef_[0])
    with joblib.Parallel(n_jobs=-1) as workers:
        # Workers start, and import.
        workers(fit(X[part], y[part]) for part in own[: 2 * os.cpu_count()])
        taken, coef = timed(lambda: workers(fit(X[part], y[part]) for part in own))
    return taken * count / len(own), np.array(sample), np.array(coef)


def main(path, count=10_000, rows=1_000, columns=20):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((count * rows, columns), dtype=np.float32)
    slopes = rng.standard_normal((count, columns), dtype=np.float32)
    groups = np.repeat(np.arange(count), rows)
    scores = np.einsum("gri,gi->gr", X.reshape(count, rows, columns), slopes).ravel()
    y = (scores + rng.logistic(size=len(X)) > 0).astype(np.int64)
    wall, sample, coef = theirs(X, y, groups, count)
    shape = {"groups": count, "rows": rows, "columns": columns, "cores": os.cpu_count()}
    lines = [{**shape, "peer": "scikit-learn", "seconds": wall}]
    order = rng.permutation(len(X))
    for name, given in {"sorted": (X, y, groups), "shuffled": (X[order], y[order], groups[order])}.items():
        whole, python, models = ours(*given)
        error = np.abs(models.coef_[sample] - coef).max()
        lines.append({**shape, "order": name, "seconds": whole, "python_seconds": python, "factor": wall / whole, "error": float(error)})
    with open(path, "w") as out:
        for line in lines:
            print(json.dumps(line), flush=True)
            out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
