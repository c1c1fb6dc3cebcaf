"""What Python adds to the library's call, of small fits on the CPU and large ones on a GPU: medians.

    python overhead.py RESULTS.jsonl
"""

import json
import sys
import time
import warnings

import numpy as np

import warpfuse
from warpfuse import _native

CASES = [("cpu", (100, 10), 400), ("cpu", (1_000, 20), 200), ("cuda", (4_000_000, 64), 7)]


def main(path):
    warnings.simplefilter("ignore")
    inner, spent = _native.fit, [0.0]

    def fit(*given, **named):
        begin = time.perf_counter()
        found = inner(*given, **named)
        spent[0] = time.perf_counter() - begin
        return found

    _native.fit = fit
    rng = np.random.default_rng(1)
    with open(path, "w") as out:
        for device, shape, runs in CASES:
            warpfuse.set_config(device=device)
            X = rng.standard_normal(shape, dtype=np.float32)
            y = X @ np.arange(shape[1], dtype=np.float32) + rng.standard_normal(shape[0], dtype=np.float32)
            models = [
                (warpfuse.Ridge(), y),
                (warpfuse.LogisticRegression(), (y > 0).astype(np.int64)),
                (warpfuse.PoissonRegressor(), np.abs(y).round()),
            ]
            for model, target in models:
                wholes, added = [], []
                for _ in range(runs):
                    begin = time.perf_counter()
                    model.fit(X, target)
                    wholes.append(time.perf_counter() - begin)
                    added.append(wholes[-1] - spent[0])
                whole, more = sorted(wholes)[runs // 2], sorted(added)[runs // 2]
                line = {"device": device, "shape": shape, "class": type(model).__name__, "fit_us": 1e6 * whole}
                out.write(json.dumps({**line, "python_us": 1e6 * more, "share": more / whole}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
