"""X is borrowed, not copied: the peak memory of a process during a fit, counted by the kernel."""

import subprocess
import sys
from pathlib import Path

import pytest

# X of 100 MB and more. A fit needs some vectors of its length and height besides, which are small.
PROGRAM = """
import sys
import warnings

import numpy as np
from scipy import sparse

import warpfuse

form, dtype, index, name = sys.argv[1:]


def memory(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


rng = np.random.default_rng(1)
if form == "csr":
    m, n, per_row = 40_000, 2_000, 400
    indices = np.sort(rng.integers(0, n - per_row, (m, per_row)), axis=1) + np.arange(per_row)
    indptr = np.arange(0, m * per_row + 1, per_row)
    parts = (rng.standard_normal(m * per_row).astype(dtype), indices.ravel().astype(index), indptr.astype(index))
    X = sparse.csr_array(parts, shape=(m, n))
    size = X.data.nbytes + X.indices.nbytes
    del indices, indptr, parts
else:
    # So large that no Hessian is formed, which takes memory of its own.
    X = np.asarray(rng.standard_normal((12_000, 3_000), dtype=dtype), order=form)
    size = X.nbytes
y = rng.standard_normal(X.shape[0])
if name == "LogisticRegression":
    y = y > 0
warnings.simplefilter("ignore")
warpfuse.set_config(device="cpu")
model = getattr(warpfuse, name)(max_iter=3)
# Threads and imports are there before anything is measured.
model.fit(X[:100], y[:100])
with open("/proc/self/clear_refs", "w") as refs:
    refs.write("5")
before = memory("VmRSS")
model.fit(X, y)
print((memory("VmHWM") - before) / size)
"""


def extra(form, dtype, index="int32", model="Ridge"):
    """Memory beyond X at the worst moment of a fit, in parts of X."""
    command = [sys.executable, "-c", PROGRAM, form, dtype, index, model]
    end = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert end.returncode == 0, end.stderr
    return float(end.stdout)


pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the kernel does not count peaks")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["C", "csr"])
def test_no_copy_of_x(form, dtype):
    assert extra(form, dtype) < 0.05


def test_no_copy_of_x_in_a_newton_fit():
    assert extra("csr", "float64", model="LogisticRegression") < 0.05


def test_64_bit_column_indices_are_narrowed():
    # 4 bytes per entry instead of 8: a quarter of X in float64.
    assert extra("csr", "float64", index="int64") < 0.25 + 0.05


def test_fortran_order_is_transposed_once_on_the_processor():
    assert 0.9 < extra("F", "float64") < 1.05
