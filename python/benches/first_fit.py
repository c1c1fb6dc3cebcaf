"""What a first user waits for: the import, the first fit on a GPU, and the memory that a large CSR matrix takes besides.

    python first_fit.py start RESULTS.jsonl
    python first_fit.py memory RESULTS.jsonl [ROWS]

``memory`` fits SciPy's CSR of ROWS (4,000,000) x 1,000,000 float32, 20 entries a row, and compares the peak of resident
memory during the fit with that before it.
"""

import json
import subprocess
import sys
import time

IMPORTS = """import time, sklearn.linear_model
start = time.perf_counter()
import warpfuse
middle = time.perf_counter()
import warpfuse.linear_model, warpfuse.svm
print(middle - start, time.perf_counter() - middle)"""

FIRST = """import time, numpy as np, sklearn.linear_model, warpfuse, warpfuse.linear_model
rng = np.random.default_rng(1)
X = rng.standard_normal((100_000, 20), dtype=np.float32)
y = X @ np.arange(20.0)
labels = y > 0
warpfuse.set_config(device="cuda", fallback="error")
times = []
for model, target in ((warpfuse.Ridge(), y), (warpfuse.LogisticRegression(), labels)) * 2:
    start = time.perf_counter()
    model.fit(X, target)
    times.append(time.perf_counter() - start)
print(*times)"""


def run(program):
    end = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    if end.returncode:
        raise SystemExit(end.stderr)
    return [float(word) for word in end.stdout.split()]


def start(write):
    imports = [run(IMPORTS) for _ in range(5)]
    write({"what": "import", "package_ms": min(i[0] for i in imports) * 1e3, "models_ms": min(i[1] for i in imports) * 1e3})
    first = [run(FIRST) for _ in range(3)]
    for place, name in enumerate(("Ridge", "LogisticRegression after Ridge")):
        times = sorted(one[place] for one in first)
        again = sorted(one[place + 2] for one in first)
        write({"what": f"first fit: {name}", "seconds": times[1], "again_seconds": again[1], "all": times})


def status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def memory(write, rows=4_000_000):
    import numpy as np
    from scipy import sparse

    import warpfuse

    cols, per_row = 1_000_000, 20
    warpfuse.set_config(device="cuda", fallback="error")
    rng = np.random.default_rng(1)
    indices = np.empty((rows, per_row), np.int32)
    for first in range(0, rows, 500_000):
        part = indices[first : first + 500_000]
        part[...] = np.sort(rng.integers(0, cols - per_row, part.shape, dtype=np.int32), axis=1)
        part += np.arange(per_row, dtype=np.int32)
    values = rng.standard_normal(rows * per_row, dtype=np.float32)
    X = sparse.csr_matrix((values, indices.reshape(-1), np.arange(0, rows * per_row + 1, per_row, dtype=np.int32)), shape=(rows, cols))
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    y = rng.standard_normal(rows)
    for name, model, target in [
        ("Ridge", warpfuse.Ridge(max_iter=5, tol=1e-2), y),
        ("LogisticRegression", warpfuse.LogisticRegression(max_iter=3), y > 0),
    ]:
        # The driver, its page-locked blocks and the kernels are there before anything is measured.
        model.fit(X[: rows // 8], target[: rows // 8])
        with open("/proc/self/clear_refs", "w") as refs:
            refs.write("5")
        before = status("VmRSS")
        begin = time.perf_counter()
        model.fit(X, target)
        seconds = time.perf_counter() - begin
        more = status("VmHWM") - before
        write({"what": f"memory: {name}", "rows": rows, "bytes_of_X": size, "more_bytes": more, "part_of_X": more / size, "seconds": seconds})


def main(what, path, *more):
    with open(path, "a") as out:

        def write(result):
            print(json.dumps(result))
            out.write(json.dumps(result) + "\n")
            out.flush()

        {"start": start, "memory": memory}[what](write, *map(int, more))


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
