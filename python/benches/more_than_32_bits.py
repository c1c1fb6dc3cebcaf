"""More than 2^31 entries with 64-bit indices, in every class that fits a sparse X on a GPU: a check of the numbers.

    python more_than_32_bits.py RESULTS.jsonl [CLASS ...]

X has 2,200,000 rows of 1,000 entries of 1/32 in 1,003 columns: row i misses columns i % 3, 500 + i % 3 and 1000 + i % 3.
What it has in common with few rows is known: rows repeat with period 3, so a fit with targets of that period equals one of
three rows with weights.
"""

import json
import sys
import time
import warnings

import numpy as np
from scipy import sparse

import warpfuse

ROWS, COLS, PER_ROW = 2_200_002, 1_003, 1_000


def columns_of(residue):
    left_out = {residue, 500 + residue, 1000 + residue}
    return np.array([j for j in range(COLS) if j not in left_out], dtype=np.int64)


def made():
    period = np.concatenate([columns_of(r) for r in range(3)])
    indices = np.tile(period, ROWS // 3)
    values = np.full(len(indices), 1 / 32, dtype=np.float32)
    # SciPy's own constructor would look at every index.
    X = sparse.csr_matrix((ROWS, COLS), dtype=np.float32)
    X.data, X.indices = values, indices
    X.indptr = np.arange(0, ROWS * PER_ROW + 1, PER_ROW, dtype=np.int64)
    small = sparse.csr_matrix(
        (values[: 3 * PER_ROW].astype(np.float64), period, np.arange(0, 3 * PER_ROW + 1, PER_ROW)), shape=(3, COLS)
    )
    return X, small


def main(path, *wanted):
    warnings.simplefilter("ignore")
    warpfuse.set_config(device="cuda", fallback="error")
    start = time.perf_counter()
    X, small = made()
    about = {"entries": int(X.nnz), "index_type": str(X.indices.dtype), "made_seconds": time.perf_counter() - start}
    residues = np.arange(ROWS) % 3
    numbers, classes = np.array([1.0, 2.0, 4.0], np.float32)[residues], np.array([0, 1, 0])[residues]
    each = ROWS / 3
    data = None
    once = [(np.arange(3_000), np.arange(3_000, 6_000))]
    cases = [
        ("Ridge", warpfuse.Ridge(alpha=each), numbers),
        ("LinearRegression", warpfuse.LinearRegression(), numbers),
        ("Lasso", warpfuse.Lasso(alpha=1e-3), numbers),
        ("ElasticNet", warpfuse.ElasticNet(alpha=1e-3), numbers),
        ("PoissonRegressor", warpfuse.PoissonRegressor(alpha=1e-3), numbers),
        ("GammaRegressor", warpfuse.GammaRegressor(alpha=1e-3), numbers),
        ("TweedieRegressor", warpfuse.TweedieRegressor(power=1.5, alpha=1e-3), numbers),
        ("GeneralizedLinearRegressor", warpfuse.GeneralizedLinearRegressor("inverse_gaussian", "log", alpha=1e-3), numbers),
        ("HuberRegressor", warpfuse.HuberRegressor(alpha=each), numbers),
        ("LogisticRegression", warpfuse.LogisticRegression(C=1 / each), classes),
        ("LinearSVC", warpfuse.LinearSVC(C=1 / each), classes),
        ("LinearSVR", warpfuse.LinearSVR(C=1 / each, loss="squared_epsilon_insensitive"), numbers),
        ("TruncatedSVD", warpfuse.TruncatedSVD(1, random_state=0), None),
        ("PCA", warpfuse.PCA(1, svd_solver="arpack", random_state=0), None),
        ("RidgeCV", warpfuse.RidgeCV([each], cv=once), numbers),
        ("LassoCV", warpfuse.LassoCV(alphas=[1e-3], cv=once), numbers),
        ("ElasticNetCV", warpfuse.ElasticNetCV(alphas=[1e-3], cv=once), numbers),
        ("LogisticRegressionCV", warpfuse.LogisticRegressionCV(Cs=[1 / each], cv=once), classes),
    ]
    with open(path, "w") as out:
        for name, model, y in cases:
            if wanted and name not in wanted:
                continue
            # The first from SciPy's arrays, and whoever takes no Dataset; the others share X on its device.
            is_placed = name != "Ridge" and y is not None and not name.endswith("CV")
            if is_placed and data is None:
                data = warpfuse.Dataset(X)
            line = {"class": name, **about, "from": "Dataset" if is_placed else "SciPy"}
            try:
                begin = time.perf_counter()
                model.fit(data if is_placed else X, y)
                line["seconds"] = time.perf_counter() - begin
                line.update(compared(model, small, y, each))
            except Exception as error:
                line.update({"ok": False, "error": f"{type(error).__name__}: {error}"[:300]})
            print(json.dumps(line), flush=True)
            out.write(json.dumps(line) + "\n")
            out.flush()


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
