"""Many threads fit at once: each finds what one alone finds, and none is counted twice or lost."""

import subprocess
import sys
import sysconfig
import threading

import numpy as np
import pytest
from sklearn.base import clone

import warpfuse

THREADS = 8
MODELS = [
    warpfuse.Ridge(),
    warpfuse.Lasso(alpha=0.1),
    warpfuse.LogisticRegression(),
    warpfuse.LinearSVC(),
    warpfuse.LinearSVR(),
    warpfuse.PoissonRegressor(),
    warpfuse.HuberRegressor(),
    warpfuse.KernelRidge(kernel="rbf"),
]


@pytest.fixture(autouse=True)
def switching():
    """Threads of an interpreter with a lock change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 5))
    return X, np.abs(X @ np.arange(5.0) + rng.standard_normal(80))


def together(work):
    """What ``work`` of each thread's number returns, all begun at one moment."""
    barrier, found = threading.Barrier(THREADS), [None] * THREADS

    def run(number):
        barrier.wait()
        try:
            with warpfuse.config_context(device="cpu"):
                found[number] = work(number)
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in found:
        if isinstance(one, Exception):
            raise one
    return found


def fitted(model, X, y, number):
    """Attributes of a fit with a penalty of its own."""
    model = clone(model)
    name = "C" if hasattr(model, "C") else "alpha"
    setattr(model, name, getattr(model, name) * (1 + 0.1 * number))
    is_classifier = hasattr(model, "decision_function")
    model.fit(X, (y > 1).astype(int) if is_classifier else y)
    return {key: value for key, value in vars(model).items() if key.endswith("_") and key != "_base_loss"}


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[key], other[key]) for key in one)


def test_fits_with_parameters_of_their_own(data):
    """All classes, in another order in each thread, so that checks, caches and the short way are used by several at once."""
    rounds = range(6)
    with warpfuse.config_context(device="cpu"):
        alone = {(m, n): fitted(MODELS[m], *data, n) for m in range(len(MODELS)) for n in range(THREADS)}
    before = {name: of["served"] for name, of in warpfuse.fits().items()}

    def work(number):
        for turn in rounds:
            for m in np.random.default_rng(100 * turn + number).permutation(len(MODELS)):
                if not same(fitted(MODELS[m], *data, number), alone[m, number]):
                    return f"{MODELS[m]!r} of thread {number}, round {turn}"
        return None

    assert together(work) == [None] * THREADS
    after = {name: of["served"] for name, of in warpfuse.fits().items()}
    counted = {name: after[name] - before[name] for name in (type(model).__name__ for model in MODELS)}
    assert counted == dict.fromkeys(counted, THREADS * len(rounds))


def test_one_dataset_and_one_matrix(data):
    X, y = data
    with warpfuse.config_context(device="cpu"):
        dataset, matrix = warpfuse.Dataset(X), warpfuse.Matrix(X)
        alone = [fitted(warpfuse.Ridge(), dataset, y, number) for number in range(THREADS)]
        products = [matrix @ np.full(5, float(number)) for number in range(THREADS)]

    def work(number):
        fits = (fitted(warpfuse.Ridge(), dataset, y, number) for _ in range(20))
        held = all(same(fit, alone[number]) for fit in fits)
        return held and all(np.array_equal(matrix @ np.full(5, float(number)), products[number]) for _ in range(50))

    assert together(work) == [True] * THREADS


def test_one_model_predicts_in_all(data):
    X, y = data
    with warpfuse.config_context(device="cpu"):
        model = warpfuse.HuberRegressor().fit(X, y)
    expected = model.predict(X)
    assert together(lambda number: all(np.array_equal(model.predict(X), expected) for _ in range(50))) == [True] * THREADS


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="of an interpreter without a global lock")
def test_the_lock_stays_off():
    program = (
        "import sys, warpfuse\n"
        "warpfuse.Ridge().fit([[0.0], [1.0]], [0.0, 1.0])\n"
        "raise SystemExit(sys._is_gil_enabled())\n"
    )
    end = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert end.returncode == 0, end.stderr
