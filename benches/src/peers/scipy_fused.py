"""Peers of the CPU's fused product over sparse X: SciPy with one thread and with all cores by hand, one JSON object a line.

By hand: rows in as many parts as there are cores, each part by `part.T @ (part @ y)` on a thread of its own (SciPy's products
release the interpreter's lock), and a sum of the parts. Medians of 7 samples after a warm-up. Run in the same session on the
same machine, f32, shapes as in `cpu.rs`:
python3 scipy_fused.py [MB] > FILE, then `--peers FILE`
"""

import json
import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse

PER_ROW = 20
COLUMNS = [1_000, 4_000, 10_000, 40_000, 100_000]


def median_us(call):
    call()
    samples = []
    for _ in range(7):
        begun = time.perf_counter()
        call()
        samples.append((time.perf_counter() - begun) * 1e6)
    return statistics.median(samples)


def drawn(rows, cols):
    """One entry in each of as many strata of columns, as in `data.rs`."""
    rng = np.random.default_rng(1)
    bounds = np.arange(PER_ROW + 1) * cols // PER_ROW
    indices = rng.integers(bounds[:-1], bounds[1:], size=(rows, PER_ROW), dtype=np.int32).ravel()
    values = rng.random(rows * PER_ROW, dtype=np.float32) - np.float32(0.5)
    offsets = np.arange(rows + 1, dtype=np.int32) * PER_ROW
    return scipy.sparse.csr_array((values, indices, offsets), shape=(rows, cols))


def main():
    size = int(sys.argv[1]) << 20 if len(sys.argv) > 1 else 1 << 30
    rows = size // (PER_ROW * 8 + 8)
    cores = len(os.sched_getaffinity(0))
    for cols in COLUMNS:
        x = drawn(rows, cols)
        y = np.random.default_rng(2).random(cols, dtype=np.float32)
        bounds = [rows * part // cores for part in range(cores + 1)]
        parts = [x[start:end] for start, end in zip(bounds, bounds[1:])]
        with ThreadPoolExecutor(cores) as pool:
            by_hand = median_us(lambda: sum(pool.map(lambda part: part.T @ (part @ y), parts)))
        peers = {"scipy": median_us(lambda: x.T @ (x @ y)), "scipy_by_hand": by_hand}
        over = {"layout": "sparse", "rows": rows, "cols": cols, "per_row": PER_ROW}
        line = {"family": "cpu", "over": over, "works": ["fused", "fused_sell"], "dtypes": ["f32"], "peers": peers}
        print(json.dumps(line), flush=True)


main()
