"""What Python adds to the library's calls, of small fits on the CPU and large ones on a GPU: medians.

The library is called to fit, and for labels to number their classes, as its own fit of labels does.

    python overhead.py RESULTS.jsonl
"""

import json
import sys
import time
import warnings

import numpy as np

import warpfuse
from warpfuse import _native

CASES = [("cpu", (100, 10), 200), ("cpu", (1_000, 20), 101), ("cuda", (4_000_000, 64), 7)]


def small(y):
    """What is timed on the CPU alone: of a large X some call the library for a gap, too, and some are the CPU's whatever its size."""
    positive = np.abs(y) + 1
    return [
        (warpfuse.Lasso(alpha=0.1), y),
        (warpfuse.ElasticNet(alpha=0.1), y),
        (warpfuse.LinearRegression(), y),
        (warpfuse.LinearSVR(), y),
        (warpfuse.GammaRegressor(), positive),
        (warpfuse.TweedieRegressor(power=1.5), positive),
        (warpfuse.GeneralizedLinearRegressor("inverse_gaussian", "log"), positive),
        (warpfuse.HuberRegressor(), y),
        (warpfuse.QuantileRegressor(alpha=0.05), y),
        (warpfuse.KernelRidge(kernel="rbf"), y),
    ]


def main(path):
    warnings.simplefilter("ignore")
    spent = [0.0]

    def timed(inner):
        def call(*given, **named):
            begin = time.perf_counter()
            found = inner(*given, **named)
            spent[0] += time.perf_counter() - begin
            return found

        return call

    for name in ("fit", "encode", "kernel_ridge"):
        setattr(_native, name, timed(getattr(_native, name)))
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
                (warpfuse.LinearSVC(), (y > 0).astype(np.int64)),
            ]
            if device == "cpu":
                models += small(y)
            for model, target in models:
                wholes, added = [], []
                model.fit(X, target)
                begin = time.perf_counter()
                model.fit(X, target)
                # Those that take milliseconds are fitted for as long as the others.
                count = max(11, min(runs, int(0.3 / (time.perf_counter() - begin)))) if device == "cpu" else runs
                for _ in range(count):
                    spent[0], begin = 0.0, time.perf_counter()
                    model.fit(X, target)
                    wholes.append(time.perf_counter() - begin)
                    added.append(wholes[-1] - spent[0])
                whole, more = sorted(wholes)[count // 2], sorted(added)[count // 2]
                line = {"device": device, "shape": shape, "class": type(model).__name__, "fit_us": 1e6 * whole}
                line.update({"python_us": 1e6 * more, "share": more / whole})
                print(json.dumps(line), flush=True)
                out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
