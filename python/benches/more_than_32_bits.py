"""More than 2^31 entries with 64-bit indices, in every class: a check of the numbers.

    python more_than_32_bits.py RESULTS.jsonl [CLASS ...]

X has 2,200,000 rows of 1,000 entries of 1/32 in 1,003 columns: row i misses columns i % 3, 500 + i % 3 and 1000 + i % 3.
What it has in common with few rows is known: rows repeat with period 3, so a fit with targets of that period equals one of
three rows with weights. QuantileRegressor, which is fitted on the CPU by steps with X^T X, gets 22,000,000 rows of 100 entries.
KernelRidge takes dense points: 50,000 of them, whose 2,500,000,000 pairs are summed and not stored.
"""

import json
import sys
import time
import warnings

import numpy as np
from scipy import sparse

import warpfuse

ROWS, PER_ROW = 2_200_002, 1_000
#: Points of KernelRidge.
POINTS = 50_001


def made(rows, per_row):
    """X, and its first three rows in f64."""
    cols = per_row + 3

    def columns_of(residue):
        left_out = {residue, per_row // 2 + residue, per_row + residue}
        return np.array([j for j in range(cols) if j not in left_out], dtype=np.int64)

    period = np.concatenate([columns_of(r) for r in range(3)])
    indices = np.tile(period, rows // 3)
    values = np.full(len(indices), 1 / 32, dtype=np.float32)
    # SciPy's own constructor would look at every index.
    X = sparse.csr_matrix((rows, cols), dtype=np.float32)
    X.data, X.indices = values, indices
    X.indptr = np.arange(0, rows * per_row + 1, per_row, dtype=np.int64)
    offsets = np.arange(0, 3 * per_row + 1, per_row)
    small = sparse.csr_matrix((values[: 3 * per_row].astype(np.float64), period, offsets), shape=(3, cols))
    return X, small


def main(path, *wanted):
    warnings.simplefilter("ignore")
    warpfuse.set_config(device="cuda", fallback="error")
    with open(path, "w") as out:

        def write(line):
            print(json.dumps(line), flush=True)
            out.write(json.dumps(line) + "\n")
            out.flush()

        cases = [case for case in cases_of(ROWS / 3) if not wanted or case[0] in wanted]
        if cases:
            fit_cases(write, cases, ROWS, PER_ROW)
        if not wanted or "KernelRidge" in wanted:
            write(kernel_case())
        if not wanted or "QuantileRegressor" in wanted:
            quantiles = ("QuantileRegressor", warpfuse.QuantileRegressor(alpha=0.05), "numbers")
            fit_cases(write, [quantiles], 10 * ROWS, PER_ROW // 10)


def cases_of(each):
    """Name, model, and which targets it gets."""
    once = [(np.arange(3_000), np.arange(3_000, 6_000))]
    inverse_gaussian = warpfuse.GeneralizedLinearRegressor("inverse_gaussian", "log", alpha=1e-3)
    epsilon_squared = warpfuse.LinearSVR(C=1 / each, loss="squared_epsilon_insensitive")
    return [
        ("LassoCV", warpfuse.LassoCV(alphas=[1e-3], cv=once), "numbers"),
        ("ElasticNetCV", warpfuse.ElasticNetCV(alphas=[1e-3], cv=once), "numbers"),
        ("LogisticRegressionCV", warpfuse.LogisticRegressionCV(Cs=[1 / each], cv=once), "classes"),
        ("RidgeCV", warpfuse.RidgeCV([each], cv=once), "numbers"),
        ("Ridge", warpfuse.Ridge(alpha=each), "numbers"),
        ("LinearRegression", warpfuse.LinearRegression(), "numbers"),
        ("Lasso", warpfuse.Lasso(alpha=1e-3), "numbers"),
        ("ElasticNet", warpfuse.ElasticNet(alpha=1e-3), "numbers"),
        ("PoissonRegressor", warpfuse.PoissonRegressor(alpha=1e-3), "numbers"),
        ("GammaRegressor", warpfuse.GammaRegressor(alpha=1e-3), "numbers"),
        ("TweedieRegressor", warpfuse.TweedieRegressor(power=1.5, alpha=1e-3), "numbers"),
        ("GeneralizedLinearRegressor", inverse_gaussian, "numbers"),
        ("HuberRegressor", warpfuse.HuberRegressor(alpha=each), "numbers"),
        ("LogisticRegression", warpfuse.LogisticRegression(C=1 / each), "classes"),
        ("LinearSVC", warpfuse.LinearSVC(C=1 / each), "classes"),
        ("LinearSVR", epsilon_squared, "numbers"),
        ("TruncatedSVD", warpfuse.TruncatedSVD(1, random_state=0), None),
        ("PCA", warpfuse.PCA(1, svd_solver="arpack", random_state=0), None),
    ]


#: What takes no Dataset, and the first that does: from SciPy's arrays.
FROM_SCIPY = {"LassoCV", "ElasticNetCV", "LogisticRegressionCV", "RidgeCV", "Ridge", "TruncatedSVD", "PCA", "QuantileRegressor"}


def fit_cases(write, cases, rows, per_row):
    start = time.perf_counter()
    X, small = made(rows, per_row)
    about = {"entries": int(X.nnz), "index_type": str(X.indices.dtype), "made_seconds": time.perf_counter() - start}
    residues = np.arange(rows) % 3
    targets = {
        "numbers": np.array([1.0, 2.0, 4.0], np.float32)[residues],
        "classes": np.array([0, 1, 0])[residues],
        None: None,
    }
    data = None
    for name, model, kind in cases:
        is_placed = name not in FROM_SCIPY
        if is_placed and data is None:
            data = warpfuse.Dataset(X)
        line = {"class": name, **about, "from": "Dataset" if is_placed else "SciPy"}
        try:
            begin = time.perf_counter()
            model.fit(data if is_placed else X, targets[kind])
            line["seconds"] = time.perf_counter() - begin
            line.update(compared(model, small, targets[kind], rows / 3))
        except Exception as error:
            line.update({"ok": False, "error": f"{type(error).__name__}: {error}"[:300]})
        write(line)


def kernel_case():
    """Three points, each many times: their predictions are those of the three with a penalty of as many times less."""
    points, y = np.array([[0.0, 0.0], [1.0, 0.5], [-0.5, 2.0]]), np.array([1.0, 2.0, 4.0])
    residues, each = np.arange(POINTS) % 3, POINTS / 3
    kernel = np.exp(-0.5 * ((points[:, None] - points) ** 2).sum(2))
    expected = kernel @ np.linalg.solve(kernel + np.eye(3), y)
    line = {"class": "KernelRidge", "entries": POINTS**2, "from": "NumPy"}
    begin = time.perf_counter()
    model = warpfuse.KernelRidge(kernel="rbf", gamma=0.5, alpha=each).fit(points[residues], y[residues])
    line["seconds"] = time.perf_counter() - begin
    distance = float(np.abs(model.predict(points[residues]) - expected[residues]).max() / expected.max())
    return {**line, "distance": distance, "ok": distance < NEAR}


#: How much predictions may differ, of the largest: f32 has 6e-8, of which solves of sums over 2 million rows keep a part.
NEAR = 1e-3
#: Whose last fit is that of another class with the same penalty.
LAST_FITS = {
    "RidgeCV": lambda each: warpfuse.Ridge(alpha=each),
    "LassoCV": lambda each: warpfuse.Lasso(alpha=1e-3),
    "ElasticNetCV": lambda each: warpfuse.ElasticNet(alpha=1e-3),
    "LogisticRegressionCV": lambda each: warpfuse.LogisticRegression(C=1 / each),
}


def compared(model, small, y, each):
    """Predictions of the three rows beside those of a fit to them alone, each with the weight of its repetitions."""
    with warpfuse.config_context(device="cpu"):
        if y is None:
            distance = spectral(model, small, each)
        else:
            name = type(model).__name__
            other = LAST_FITS[name](each) if name in LAST_FITS else type(model)(**model.get_params())
            other.fit(small, y[:3], np.full(3, each))
            show = "decision_function" if hasattr(model, "decision_function") else "predict"
            found, expected = (np.asarray(getattr(m, show)(small), float) for m in (model, other))
            distance = float(np.abs(found - expected).max() / np.abs(expected).max())
    return {"distance": distance, "ok": bool(distance < NEAR)}


def spectral(model, small, each):
    """The first singular value beside that of the three rows, which is their number's root smaller."""
    dense = small.toarray()
    centred = dense - dense.mean(axis=0) if isinstance(model, warpfuse.PCA) else dense
    expected = np.linalg.svd(centred, compute_uv=False)[0] * each**0.5
    return float(abs(model.singular_values_[0] / expected - 1.0))


if __name__ == "__main__":
    main(*sys.argv[1:])
