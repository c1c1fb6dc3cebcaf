"""What Python adds to the library's call, of small fits on the CPU and large ones on a GPU: medians.

A fit's whole time less that of the library's calls, which the compiled module takes: checks of parameters, X and y, arrays and
attributes are all Python's, the numbering of labels is the library's. Parameters are those of the fit before ("again"), or others
("new"). With new parameters fits are also of weighted rows and of labels that are text or floats ("weights", "text", "floats"),
small ones of SciPy's CSR ("csr").

    python overhead.py RESULTS.jsonl
"""

import json
import sys
import time
import warnings

import numpy as np
from scipy import sparse

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


def change(model, number):
    """Gives the model a penalty that it has not had."""
    name = next(name for name in ("alpha", "C", "tol") if hasattr(model, name))
    setattr(model, name, getattr(model, name) * (1 + 1e-6 * number))


def kinds(model, X, y):
    """What a fit is given besides plain arrays, by its name."""
    if type(model) is warpfuse.KernelRidge:
        return {}
    found = {"weights": (X, y, np.random.default_rng(2).random(len(X)) + 0.5)}
    if len(X) < 100_000:
        found["csr"] = (sparse.csr_matrix(np.where(X > 0.5, X, 0)), y)
    return found | ({"text": (X, np.array(["no", "yes"])[y]), "floats": (X, y.astype(np.float64))} if y.dtype.kind == "i" else {})


def measured(model, given, runs, change):
    """Medians of the whole time of a fit and of what Python adds, in seconds."""
    wholes, added = [], []
    for number in range(runs + 3):
        change(model, number)
        spent, begin = _native.call_seconds(), time.perf_counter()
        model.fit(*given)
        whole = time.perf_counter() - begin
        wholes.append(whole)
        added.append(whole - (_native.call_seconds() - spent))
    # Each way is taken for the first time before.
    return np.median(wholes[3:]), np.median(added[3:])


def main(path):
    warnings.simplefilter("ignore")
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
            models += small(y) if device == "cpu" else []
            for model, target in models:
                model.fit(X, target)
                begin = time.perf_counter()
                model.fit(X, target)
                # Those that take milliseconds are fitted for as long as the others.
                count = max(11, min(runs, int(0.3 / (time.perf_counter() - begin)))) if device == "cpu" else runs
                # Kernels are summed in f64 alone: a caller from Rust has such points.
                of_float64 = type(model) is warpfuse.KernelRidge
                given = (X.astype(np.float64), target.astype(np.float64)) if of_float64 else (X, target)
                cases = [("again", given, lambda *_: None), ("new", given, change)]
                cases += [(name, other, change) for name, other in kinds(model, *given).items()]
                for parameters, given, how in cases:
                    whole, more = measured(model, given, count, how)
                    line = {"device": device, "shape": shape, "class": type(model).__name__, "parameters": parameters}
                    line.update({"fit_us": 1e6 * whole, "python_us": 1e6 * more, "share": more / whole})
                    print(json.dumps(line), flush=True)
                    out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
