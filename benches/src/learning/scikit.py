"""scikit-learn's lbfgs on arrays that the benchmark dumped: `scikit.py FOLDER NAME ROWS COLS LEAST SECONDS`.

Prints one JSON object: `us`, the microseconds of the first fit of ever smaller tolerance that comes within 1e-6 of the
objective LEAST, or of the last fit; `gap`, how near that came, relative to LEAST; `n_iter`. A fit has as many iterations at most as
what is left of SECONDS allows, by those of a short fit before.
"""

import json
import os
import sys
import time
import warnings

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression

NEAR = 1e-6
# Of the fit that tells how long one takes, and of others at most.
FIRST_ITERATIONS, MOST_ITERATIONS = 3, 1_000


def load(folder, name, rows, cols):
    def read(what, dtype):
        return np.fromfile(os.path.join(folder, f"{name}.{what}"), dtype=dtype)

    values = read("values", np.float32).astype(np.float64)
    if os.path.exists(os.path.join(folder, f"{name}.offsets")):
        offsets = read("offsets", np.uint64).astype(np.int32)
        indices = read("indices", np.int32)
        x = scipy.sparse.csr_matrix((values, indices, offsets), shape=(rows, cols))
    else:
        x = values.reshape(rows, cols)
    return x, read("targets", np.float32)


def objective(x, b, w):
    margins = (x @ w) * (2.0 * b - 1.0)
    return np.logaddexp(0.0, -margins).mean() + 0.5 * (w @ w) / len(b)


def main():
    folder, name = sys.argv[1:3]
    rows, cols = int(sys.argv[3]), int(sys.argv[4])
    least, seconds_left = float(sys.argv[5]), float(sys.argv[6])
    warnings.filterwarnings("ignore")
    x, b = load(folder, name, rows, cols)

    def fit(tol, max_iter):
        model = LogisticRegression(C=1.0, fit_intercept=False, tol=tol, max_iter=max_iter)
        begun = time.perf_counter()
        model.fit(x, b)
        return model, time.perf_counter() - begun

    model, seconds = fit(1e-4, FIRST_ITERATIONS)
    of_iteration = seconds / max(1, model.n_iter_[0])
    gap = objective(x, b, model.coef_[0]) / least - 1.0
    for tol in (1e-4, 1e-5, 1e-6, 1e-7):
        max_iter = min(MOST_ITERATIONS, int(seconds_left / of_iteration))
        if max_iter < FIRST_ITERATIONS:
            break
        model, seconds = fit(tol, max_iter)
        seconds_left -= seconds
        gap = objective(x, b, model.coef_[0]) / least - 1.0
        if gap <= NEAR or model.n_iter_[0] >= max_iter:
            break
    print(json.dumps({"us": 1e6 * seconds, "gap": float(gap), "n_iter": int(model.n_iter_[0])}))


main()
