"""Times of fits and predictions beside scikit-learn's, from data in host memory to coefficients and to probabilities.

    python against_peers.py RESULTS.jsonl [--ours] [CASE ...]

Cases have the shapes of public data sets with seeded values; columns of the sparse ones follow a power law. For each there
is a line of warpfuse, and one for each peer: scikit-learn on all cores, scikit-learn on CuPy's or PyTorch's arrays by the
array API (dense X), cuML where it is installed. Times are medians of up to five runs. A peer that has not ended after its
limit is stopped, and its time is a lower bound (``"stopped": true``). All minimise the same objective; the value that each
reached is in its line. ``--ours`` times warpfuse alone. The environment variable COMMIT names the commit.
"""

import datetime
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import warnings

# SciPy looks at it when it is imported: scikit-learn's array API needs it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
from scipy import sparse

import warpfuse

#: Rows, columns and entries of a row (None: dense).
SHAPES = {
    "higgs": (11_000_000, 28, None),
    "rcv1": (804_414, 47_236, 76),
    "url": (2_396_130, 3_231_961, 116),
    "avazu": (14_596_137, 1_000_000, 15),
}
RUNS = 5


class Stopped(Exception):
    """A peer took longer than its limit."""


def _stop(*_):
    raise Stopped


def machine():
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        gpu, driver = subprocess.check_output(query, text=True).splitlines()[0].split(", ")
    except (OSError, subprocess.CalledProcessError, IndexError, ValueError):
        gpu, driver = "none", "none"
    import sklearn

    return {
        "date": datetime.date.today().isoformat(),
        "gpu": gpu,
        "driver": driver,
        "cores": os.cpu_count(),
        "commit": os.environ.get("COMMIT", "unknown"),
        "sklearn": sklearn.__version__,
    }


def made(shape, scale=1.0):
    """X and linear predictors on the host; made on the GPU by CuPy where that is there."""
    try:
        import cupy as xp
    except ImportError:
        xp = np
    rows, cols, per_row = SHAPES[shape]
    rows = int(rows * scale)
    rng = xp.random.default_rng(20261123)
    to_host = (lambda a: a.get()) if xp is not np else np.asarray
    if per_row is None:
        X = np.empty((rows, cols), np.float32)
        for first in range(0, rows, 1 << 20):
            part = X[first : first + (1 << 20)]
            part[...] = to_host(rng.standard_normal(part.shape, dtype=np.float32))
        w = np.random.default_rng(5).standard_normal(cols).astype(np.float32) / np.sqrt(cols)
        return X, X @ w
    indices = np.empty((rows, per_row), np.int32)
    values = np.empty(rows * per_row, np.float32)
    for first in range(0, rows, 1 << 18):
        part = indices[first : first + (1 << 18)]
        u = rng.random(part.shape, dtype=np.float32)
        drawn = xp.sort(((u * u * u) * (cols - per_row)).astype(np.int32), axis=1) + xp.arange(per_row, dtype=np.int32)
        part[...] = to_host(drawn)
        begin = first * per_row
        values[begin : begin + part.size] = to_host(rng.random(part.size, dtype=np.float32))
    offsets = np.arange(rows + 1, dtype=np.int64) * per_row
    if rows * per_row < 2**31:
        offsets = offsets.astype(np.int32)
    X = sparse.csr_matrix((values, indices.reshape(-1), offsets), shape=(rows, cols))
    w = np.random.default_rng(5).standard_normal(cols).astype(np.float32)
    t = warpfuse.Dataset(X).decision(w[None].astype(np.float64), np.zeros(1)).ravel()
    return X, t / t.std()


def labels(t):
    return (t + np.random.default_rng(6).logistic(size=len(t)) > 0).astype(np.int64)


def numbers(t):
    return t.astype(np.float64) + np.random.default_rng(7).standard_normal(len(t))


def counts(t):
    return np.random.default_rng(8).poisson(np.exp(np.clip(0.5 * t, -3, 3))).astype(np.float64)


def objective(kind, model, data, y):
    """The mean loss with its penalty, in f64, of coefficients wherever they lie."""
    coef = np.atleast_2d(np.asarray(warpfuse._lent.to_host(model.coef_), np.float64))
    intercept = np.atleast_1d(np.asarray(warpfuse._lent.to_host(model.intercept_), np.float64))
    t = data.decision(coef, np.broadcast_to(intercept, len(coef))).ravel().astype(np.float64)
    square = float((coef * coef).sum())
    if kind == "LogisticRegression":
        return float(np.logaddexp(0.0, np.where(y > 0, -t, t)).mean() + 0.5 * square / (model.C * len(y)))
    if kind == "Ridge":
        return float((0.5 * ((y - t) ** 2).sum() + 0.5 * model.alpha * square) / len(y))
    if kind == "PoissonRegressor":
        return float((np.exp(t) - y * t).mean() + 0.5 * model.alpha * square)
    margin = np.maximum(0.0, 1.0 - np.where(y > 0, t, -t))
    penalty = square + float(intercept @ intercept) * model.intercept_scaling**-2
    return float((model.C * (margin**2).sum() + 0.5 * penalty) / len(y))


def timed(fit, predict, limit):
    """Seconds of up to RUNS fits and predictions within a limit, and the last model."""
    fits, predictions, model, stopped = [], [], None, False
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, limit)
    begun = start = time.perf_counter()
    try:
        while len(fits) < RUNS and (not fits or time.perf_counter() - begun + fits[-1] < limit):
            start = time.perf_counter()
            model = fit()
            fits.append(time.perf_counter() - start)
            start = time.perf_counter()
            predict(model)
            predictions.append(time.perf_counter() - start)
    except Stopped:
        stopped = not fits
        if stopped:
            fits.append(time.perf_counter() - start)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    seconds = {"fit_seconds": statistics.median(fits), "runs": len(fits), "stopped": stopped}
    if predictions:
        seconds["predict_seconds"] = statistics.median(predictions)
    return seconds, model


def outputs(model):
    return model.predict_proba if hasattr(model, "predict_proba") else model.predict


def peers(kind, params, X, y):
    """Who fits besides, by name."""
    import sklearn.linear_model
    import sklearn.svm

    theirs = getattr(sklearn.linear_model, kind, None) or getattr(sklearn.svm, kind)
    yield "scikit-learn", lambda: theirs(**params).fit(X, y), lambda model: outputs(model)(X)
    if not sparse.issparse(X) and kind != "LinearSVC":
        yield from on_gpu(theirs, kind, params, X, y)
    try:
        import cuml
    except ImportError:
        return
    of_cuml = getattr(cuml.linear_model, kind, None) or getattr(cuml.svm, kind, None)
    if of_cuml is not None:
        yield "cuML", lambda: of_cuml(**params).fit(X, y), lambda model: outputs(model)(X)


def on_gpu(theirs, kind, params, X, y):
    """scikit-learn by the array API: X crosses within the time, as it does for the others."""
    import sklearn

    for name in ("torch", "cupy"):
        try:
            library = __import__(name)
        except ImportError:
            continue

        def there(array, library=library):
            return library.as_tensor(array, device="cuda") if library.__name__ == "torch" else library.asarray(array)

        def fit(there=there):
            with sklearn.config_context(array_api_dispatch=True):
                solver = {"Ridge": {"solver": "svd"}}.get(kind, {})
                return theirs(**params, **solver).fit(there(X), there(y.astype(np.float32) if kind != "LogisticRegression" else y))

        def predict(model, there=there):
            with sklearn.config_context(array_api_dispatch=True):
                return warpfuse._lent.to_host(outputs(model)(there(X)))

        yield f"scikit-learn on {name}", fit, predict


#: Data, class, its parameters, targets, and the seconds that peers get.
CASES = {
    "higgs-logistic": ("higgs", 1.0, "LogisticRegression", {"C": 1.0, "max_iter": 200}, labels, 25),
    "higgs-ridge": ("higgs", 1.0, "Ridge", {"alpha": 1.0}, numbers, 10),
    "higgs-poisson": ("higgs", 1.0, "PoissonRegressor", {"alpha": 1e-4, "max_iter": 200}, counts, 20),
    "rcv1-logistic": ("rcv1", 1.0, "LogisticRegression", {"C": 1.0, "max_iter": 200}, labels, 20),
    "rcv1-svc": ("rcv1", 1.0, "LinearSVC", {"C": 0.1}, labels, 10),
    "avazu-logistic": ("avazu", 1.0, "LogisticRegression", {"C": 1.0, "max_iter": 200}, labels, 30),
    "url-logistic": ("url", 1.0, "LogisticRegression", {"C": 1.0, "max_iter": 200}, labels, 45),
}


def run(case, write, held, with_peers):
    shape, scale, kind, params, targets, limit = CASES[case]
    if shape not in held:
        held.clear()
        held[shape] = made(shape, scale)
    X, t = held[shape]
    y = targets(t)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse.issparse(X) else X.nbytes
    about = {"case": case, "class": kind, "params": params, "rows": X.shape[0], "cols": X.shape[1], "bytes_of_X": size}
    ours = getattr(warpfuse, kind)
    # The GPU has been started and kernels are loaded: what that takes is told by first_fit.py.
    ours(**{**params, "max_iter": 2}).fit(X[: 1 << 17], y[: 1 << 17])
    seconds, model = timed(lambda: ours(**params).fit(X, y), lambda model: outputs(model)(X), 4 * limit)
    data = warpfuse.Dataset(X)
    iterations = np.max(model.n_iter_) if getattr(model, "n_iter_", None) is not None else None
    write({**about, "who": "warpfuse", **seconds, "n_iter": iterations, "objective": objective(kind, model, data, y)})
    for name, fit, predict in peers(kind, params, X, y) if with_peers else ():
        try:
            seconds, model = timed(fit, predict, limit)
        except Exception as error:
            write({**about, "who": name, "error": f"{type(error).__name__}: {error}"[:300]})
            continue
        value = None if model is None else objective(kind, model, data, y)
        write({**about, "who": name, **seconds, "objective": value})


def main(path, *cases):
    warnings.simplefilter("ignore")
    warpfuse.set_config(fallback="error", device=os.environ.get("WARPFUSE_DEVICE", "cuda"))
    of_all, held = machine(), {}
    try:
        import cuml

        of_all["cuml"] = cuml.__version__
    except ImportError:
        of_all["cuml"] = "not installed"
    with open(path, "a") as out:

        def write(result):
            line = json.dumps({**result, **of_all}, default=float)
            print(line, flush=True)
            out.write(line + "\n")
            out.flush()

        for case in [case for case in cases if case in CASES] or CASES:
            run(case, write, held, "--ours" not in cases)


if __name__ == "__main__":
    main(*sys.argv[1:])
