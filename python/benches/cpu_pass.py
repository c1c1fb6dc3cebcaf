"""The fused product of a sparse X on the cores beside SciPy's, X's rows shared out to one thread for each core by hand: medians.

    python cpu_pass.py RESULTS.jsonl [ROWS]
"""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import sparse

import warpfuse

PER_ROW = 20
RUNS = 11


def made(rows, cols):
    """One entry in each of 20 strata of columns, as the benches of the library draw them."""
    rng = np.random.default_rng(1)
    widths = cols // PER_ROW
    indices = rng.integers(0, widths, (rows, PER_ROW), dtype=np.int32)
    indices += np.arange(PER_ROW, dtype=np.int32) * widths
    X = sparse.csr_matrix((rows, cols), dtype=np.float32)
    X.data = rng.random(rows * PER_ROW, dtype=np.float32) - np.float32(0.5)
    X.indices = indices.ravel()
    X.indptr = np.arange(0, rows * PER_ROW + 1, PER_ROW, dtype=np.int32)
    return X


def median(work):
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - begin)
    return sorted(times)[RUNS // 2], found


def main(path, rows=6_391_320):
    threads = len(os.sched_getaffinity(0))
    pool = ThreadPoolExecutor(threads)
    with open(path, "w") as out:
        for cols in (1_000, 10_000, 100_000):
            X = made(int(rows), cols)
            y = np.random.default_rng(2).random(cols, dtype=np.float32) - np.float32(0.5)
            cuts = [X.shape[0] * i // threads for i in range(threads + 1)]
            parts = [X[start:end] for start, end in zip(cuts, cuts[1:], strict=False)]
            matrix = warpfuse.Matrix(X, device="cpu")

            def by_hand(parts=parts, y=y):
                return sum(pool.map(lambda part: part.T @ (part @ y), parts))

            ours, w = median(lambda matrix=matrix, y=y: matrix.fused(y))
            theirs, expected = median(by_hand)
            line = {"rows": X.shape[0], "cols": cols, "entries": int(X.nnz), "threads": threads}
            line.update({"warpfuse_ms": 1e3 * ours, "scipy_ms": 1e3 * theirs, "times": theirs / ours})
            line["distance"] = float(np.linalg.norm(w - expected) / np.linalg.norm(expected))
            print(json.dumps(line), flush=True)
            out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
