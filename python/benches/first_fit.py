"""What a first user waits for: the import, the first fit on a GPU, and the memory that a large CSR matrix takes besides.

    python first_fit.py start RESULTS.jsonl
    python first_fit.py memory RESULTS.jsonl [ROWS]

``memory`` fits SciPy's CSR of ROWS (4,000,000) x 1,000,000 float32, 20 entries a row, and NumPy's array of ROWS x 64, each in
a process of its own, and compares the peak of resident memory during a second fit with that before it.
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


MODELS = {
    "Ridge": lambda warpfuse: warpfuse.Ridge(max_iter=5, tol=1e-2),
    "LogisticRegression": lambda warpfuse: warpfuse.LogisticRegression(max_iter=3),
    "PoissonRegressor": lambda warpfuse: warpfuse.PoissonRegressor(max_iter=3),
    "LinearSVC": lambda warpfuse: warpfuse.LinearSVC(max_iter=3),
}


def made(form, rows):
    import numpy as np
    from scipy import sparse

    rng = np.random.default_rng(1)
    y = rng.standard_normal(rows)
    if form == "numpy":
        return rng.standard_normal((rows, 64), dtype=np.float32), y
    cols, per_row = 1_000_000, 20
    # Ascending in each row without sorting: a column from each of as many stretches.
    stretch = cols // per_row
    indices = rng.integers(0, stretch, (rows, per_row), dtype=np.int32)
    indices += np.arange(0, cols, stretch, dtype=np.int32)
    values = rng.standard_normal(rows * per_row, dtype=np.float32)
    offsets = np.arange(0, rows * per_row + 1, per_row, dtype=np.int32)
    return sparse.csr_matrix((values, indices.reshape(-1), offsets), shape=(rows, cols)), y


def trim():
    """Gives what the heap has free back to the system, so that nothing of an earlier fit is used again."""
    import ctypes

    ctypes.CDLL("libc.so.6").malloc_trim(0)


def measured(model, X, target):
    """Bytes that a fit takes at its worst moment, and its seconds. The GPU, its kernels and the page-locked blocks of the link
    are there from a fit before."""
    model.fit(X, target)
    trim()
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")
    before = status("VmRSS")
    begin = time.perf_counter()
    model.fit(X, target)
    return status("VmHWM") - before, time.perf_counter() - begin


def fits_of(form, rows):
    """What fits take besides X: a line of JSON for each class."""
    import warnings

    import numpy as np
    from scipy import sparse

    import warpfuse

    warnings.simplefilter("ignore")
    warpfuse.set_config(device="cuda", fallback="error")
    X, y = made(form, int(rows))
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse.issparse(X) else X.nbytes
    about = {"form": form, "rows": X.shape[0], "cols": X.shape[1], "bytes_of_X": size}
    labels, counts = y > 0, np.abs(y).round()
    targets = {"LogisticRegression": labels, "LinearSVC": labels, "PoissonRegressor": counts}
    for name, model in MODELS.items():
        more, seconds = measured(model(warpfuse), X, targets.get(name, y))
        line = {"what": f"memory: {name}", **about, "more_bytes": more, "part_of_X": more / size, "seconds": seconds}
        print(json.dumps(line), flush=True)


def memory(write, rows=4_000_000):
    for form in ("csr", "numpy"):
        program = [sys.executable, __file__, "fits_of", form, str(rows)]
        end = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
        for line in end.stdout.splitlines():
            write(json.loads(line))
        if end.returncode:
            write({"what": f"memory: {form}", "error": end.stderr[-500:]})


def main(what, path, *more):
    if what == "fits_of":
        return fits_of(path, *more)
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
