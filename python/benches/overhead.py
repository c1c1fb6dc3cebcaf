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

CASES = [("cpu", (100, 10), 400), ("cpu", (1_000, 20), 200), ("cuda", (4_000_000, 64), 7)]


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

    _native.fit, _native.encode = timed(_native.fit), timed(_native.encode)
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
                # Of a large X it calls the library for its gap, too.
                models.append((warpfuse.Lasso(alpha=0.1), y))
            for model, target in models:
                wholes, added = [], []
                for _ in range(runs):
                    spent[0], begin = 0.0, time.perf_counter()
                    model.fit(X, target)
                    wholes.append(time.perf_counter() - begin)
                    added.append(wholes[-1] - spent[0])
                whole, more = sorted(wholes)[runs // 2], sorted(added)[runs // 2]
                line = {"device": device, "shape": shape, "class": type(model).__name__, "fit_us": 1e6 * whole}
                line.update({"python_us": 1e6 * more, "share": more / whole})
                print(json.dumps(line), flush=True)
                out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
