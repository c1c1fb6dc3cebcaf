"""scikit-learn's lbfgs on arrays that the benchmark dumped: `scikit.py FOLDER NAME ROWS COLS LEAST MAX_ITER`.

Prints one JSON object: `us`, the microseconds of the first fit of ever smaller tolerance that comes within 1e-6 of the
objective LEAST, or of the last fit; `gap`, how near that came, relative to LEAST; `n_iter`.
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
    least, max_iter = float(sys.argv[5]), int(sys.argv[6])
    warnings.filterwarnings("ignore")
    x, b = load(folder, name, rows, cols)
    for tol in (1e-4, 1e-5, 1e-6, 1e-7):
        model = LogisticRegression(C=1.0, fit_intercept=False, tol=tol, max_iter=max_iter)
        begun = time.perf_counter()
        model.fit(x, b)
        seconds = time.perf_counter() - begun
        gap = objective(x, b, model.coef_[0]) / least - 1.0
        if gap <= NEAR or model.n_iter_[0] >= max_iter:
            break
    print(json.dumps({"us": 1e6 * seconds, "gap": float(gap), "n_iter": int(model.n_iter_[0])}))


main()
