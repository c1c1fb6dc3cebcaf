"""What is warpfuse's own: settings, datasets, fallbacks, interruption, products, rankings."""

import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pandas
import pytest
import sklearn.linear_model
from scipy import sparse
from scipy.sparse.linalg import lsqr
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, ShuffleSplit, validation_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import warpfuse


def data(rng, rows=100, cols=4, dtype=np.float64):
    X = rng.normal(size=(rows, cols)).astype(dtype)
    return X, X @ np.arange(1.0, cols + 1) + 1.0


def test_a_dataset_is_fitted_many_times(rng):
    X, y = data(rng)
    placed = warpfuse.Dataset(sparse.csr_array(X))
    assert placed.shape == X.shape and placed.nnz == X.size
    for alpha in (0.1, 10.0):
        ours = warpfuse.Ridge(alpha=alpha).fit(placed, y)
        np.testing.assert_allclose(ours.coef_, warpfuse.Ridge(alpha=alpha).fit(X, y).coef_, rtol=1e-9)
        np.testing.assert_allclose(ours.predict(placed), ours.predict(X), rtol=1e-9)
    codes = (y > 1).astype(int)
    model = warpfuse.LogisticRegression().fit(placed, codes)
    np.testing.assert_array_equal(model.predict(placed), model.predict(X))
    assert warpfuse.ElasticNet(alpha=0.1).fit(placed, y).dual_gap_ < 1e-6
    with pytest.raises(ValueError, match="cannot fit a Dataset"):
        warpfuse.LogisticRegression(solver="liblinear").fit(placed, codes)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(placed)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_stay(index, dtype, rng):
    X, y = data(rng, dtype=dtype)
    S = sparse.csr_matrix(X)
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    for model in (warpfuse.Ridge(), warpfuse.ElasticNet(alpha=0.01), warpfuse.LinearRegression()):
        found = model.fit(S, y)
        assert found.coef_.dtype == dtype
        # An f32 fit stops where rounding hides any further decrease.
        np.testing.assert_allclose(found.coef_, model.fit(X, y).coef_, rtol=1e-9 if dtype == np.float64 else 1e-3)


def test_unsorted_and_repeated_indices(rng):
    S = sparse.csr_matrix((np.ones(5), np.array([2, 0, 0, 1, 1]), np.array([0, 3, 5])), shape=(2, 3))
    assert not S.has_canonical_format
    before = S.indices.copy()
    ours = warpfuse.Ridge().fit(S, [1.0, 2.0])
    np.testing.assert_allclose(ours.coef_, sklearn.linear_model.Ridge().fit(S.toarray(), [1.0, 2.0]).coef_, rtol=1e-8)
    np.testing.assert_array_equal(S.indices, before)


def test_bad_matrices_are_refused():
    native = warpfuse._native
    device = native.Device("cpu")
    whole = (np.ones(2), np.array([0, 1], np.int32), np.array([0, 1, 2], np.int32), (2, 2))
    assert native.Dataset(whole, device).nnz == 2
    for broken in (
        (whole[0], np.array([0, -1], np.int32), *whole[2:]),
        (whole[0], np.array([0, 2], np.int32), *whole[2:]),
        (whole[0], whole[1], np.array([0, 2, 1], np.int32), (2, 2)),
        (whole[0], whole[1], np.array([0, -1, 2], np.int64), (2, 2)),
        (np.ones(1), *whole[1:]),
    ):
        with pytest.raises(ValueError, match="no valid CSR matrix"):
            native.Dataset(broken, device)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scikit_learns_words(value, rng):
    X, y = data(rng)
    X[3, 1] = value
    with pytest.raises(ValueError, match="Input X contains"):
        warpfuse.Ridge().fit(X, y)
    with pytest.raises(ValueError, match="Input y contains|y contains"):
        warpfuse.Ridge().fit(np.ones((3, 2)), [1.0, value, 2.0])


def test_fallbacks_are_counted_and_said(rng):
    X, y = data(rng)
    warpfuse._report.forget()
    with warpfuse.config_context(fallback="warn"), pytest.warns(warpfuse.FallbackWarning, match="liblinear"):
        model = warpfuse.LogisticRegression(solver="liblinear").fit(X, y > 0)
    assert model.score(X, y > 0) > 0.9
    warpfuse.LogisticRegression().fit(X, y > 0)
    counts = warpfuse.fits()["LogisticRegression"]
    assert counts["served"] == 1 and sum(counts["fell_back"].values()) == 1
    with warpfuse.config_context(fallback="error"), pytest.raises(ValueError, match="cannot be fitted by warpfuse"):
        warpfuse.LogisticRegression(solver="liblinear").fit(X, y > 0)


def test_penalties_by_cross_validation_in_searches_and_pickles(rng):
    X, y = data(rng)
    y = y + rng.normal(size=len(y))
    logistic = {"Cs": 3, "scoring": "accuracy", "l1_ratios": (0,), "use_legacy_attributes": False}
    for model, target, grid in [
        (warpfuse.LassoCV(cv=3, alphas=5), y, {"fit_intercept": [True, False]}),
        (warpfuse.ElasticNetCV(cv=3, alphas=5), y, {"l1_ratio": [0.2, 0.9]}),
        (warpfuse.RidgeCV(cv=3), y, {"alphas": [(0.1, 1.0), (10.0, 100.0)]}),
        (warpfuse.LogisticRegressionCV(cv=3, **logistic), y > 1, {"tol": [1e-4, 1e-6]}),
        (warpfuse.HuberRegressor(), y, {"epsilon": [1.2, 2.0]}),
        (warpfuse.QuantileRegressor(), y, {"quantile": [0.3, 0.5]}),
    ]:
        search = GridSearchCV(model, grid, cv=2).fit(X, target)
        again = pickle.loads(pickle.dumps(search.best_estimator_))
        np.testing.assert_array_equal(again.predict(X), search.predict(X))


def test_a_path_that_is_scikit_learns_does_not_stay(rng):
    X, y = data(rng)
    model = warpfuse.LassoCV(cv=3, alphas=5, precompute=X.T @ X)
    with warpfuse.config_context(fallback="silent"):
        model.fit(X, y)
    assert "path" not in vars(model)
    assert model.set_params(precompute="auto").fit(X, y).alpha_ > 0


def test_a_plan_needs_no_gpu(rng):
    found = warpfuse.plan((4_000_000, 1_000), nnz=80_000_000, dtype=np.float32, gpu="h200")
    html = found._repr_html_()
    assert found.device == "NVIDIA H200" and found.reasons and found.figures["kernel"] in html
    assert "<table>" in html and all(reason in str(found) for reason in found.reasons[:1])
    X, _ = data(rng)
    placed = warpfuse.Matrix(X)
    assert str(warpfuse.plan(placed)) == str(placed.plan())
    for form in (X, sparse.csr_array(X)):
        assert warpfuse.plan(form, "forward", gpu="a100").shape == X.shape
    with pytest.raises(ValueError, match="gpu must be"):
        warpfuse.plan(X, gpu="abacus")
    with pytest.raises(ValueError, match="no product"):
        warpfuse.plan(X, "sideways", gpu="h200")


def test_plain_arrays_take_the_short_way(rng, monkeypatch):
    X, y = data(rng)

    def fails(*_arguments, **_named):
        raise AssertionError("scikit-learn's checks were asked")

    expected = warpfuse.Ridge().fit(X.tolist(), y.tolist()).coef_
    monkeypatch.setattr(warpfuse._accelerated, "validate_data", fails)
    model = warpfuse.Ridge().fit(X, y)
    np.testing.assert_array_equal(model.coef_, expected)
    assert model.n_features_in_ == 4
    with pytest.raises(AssertionError, match="were asked"):
        warpfuse.Ridge().fit(X[:, ::2], y)


def test_the_short_way_lets_nothing_wrong_through(rng):
    X, y = data(rng)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = warpfuse.Ridge().fit(frame, y)
    assert not hasattr(model.fit(X, y), "feature_names_in_")
    for value, words in [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]:
        spoiled = X.copy()
        spoiled[3, 2] = value
        with pytest.raises(ValueError, match=f"Input X contains {words}"):
            model.fit(spoiled, y)
        with pytest.raises(ValueError, match=f"Input y contains {words}"):
            model.fit(X, spoiled[:, 2])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    # Finite, with a sum that is not.
    huge = np.full((3, 1), 1.5e308)
    huge[1] = 0.0
    assert warpfuse._plain.are_plain(huge, np.zeros(3), {"dtype": [np.float64]})
    for alpha in (-1.0, "much", None, np.nan):
        with pytest.raises(ValueError, match="The 'alpha' parameter of Ridge"):
            model.set_params(alpha=alpha).fit(X, y)
    with pytest.raises(ValueError, match="Unknown label type"):
        warpfuse.LogisticRegression().fit(X, y)
    with pytest.warns(UserWarning, match="greater than 50%"):
        warpfuse.LogisticRegression(max_iter=1).fit(X, np.arange(len(y)))


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_the_library_looks_at_large_arrays_and_scikit_learn_says_what_is_wrong(form, rng):
    X, y = data(rng, 40_000)
    labels = (y > 0).astype(np.int64)
    X[:, 3] *= rng.random(len(X)) > 0.5
    given = X if form == "dense" else sparse.csr_matrix(X)
    good = {
        "squares": warpfuse.Ridge().fit(given, y),
        "classes": warpfuse.LogisticRegression().fit(given, labels),
        "counts": warpfuse.PoissonRegressor().fit(given, np.abs(y).round()),
    }
    for value, words in [(np.nan, "NaN"), (np.inf, "infinity")]:
        spoiled = given.copy()
        if form == "dense":
            spoiled[30_000, 1] = value
        else:
            spoiled.data[100_000] = value
        bad_y = y.copy()
        bad_y[30_000] = value
        for model, target in [(good["squares"], y), (good["classes"], labels), (good["counts"], np.abs(y))]:
            with pytest.raises(ValueError, match=f"Input X contains {words}"):
                clone(model).fit(spoiled, target)
            with pytest.raises(ValueError, match=f"Input X contains {words}"):
                model.predict(spoiled)
        for name in ("squares", "counts"):
            with pytest.raises(ValueError, match=f"Input y contains {words}"):
                clone(good[name]).fit(given, bad_y)
    with pytest.raises(ValueError, match="out of the valid range of the loss 'HalfPoissonLoss'"):
        clone(good["counts"]).fit(given, y)
    with pytest.raises(ValueError, match="at least 2 classes"):
        clone(good["classes"]).fit(given, np.zeros(len(y), dtype=np.int64))
    with pytest.raises(ValueError, match="X has 3 features, but Ridge is expecting 4"):
        good["squares"].predict(given[:, :3])


def test_large_rows_out_of_order_are_sorted_and_repeated_entries_added(rng):
    X, y = data(rng, 40_000)
    plain = sparse.csr_matrix(X)
    expected = warpfuse.Ridge().fit(plain, y).coef_
    shuffled = sparse.csr_matrix(
        (plain.data.reshape(-1, 4)[:, ::-1].ravel(), plain.indices.reshape(-1, 4)[:, ::-1].ravel(), plain.indptr)
    )
    halves = sparse.csr_matrix(
        (np.repeat(plain.data / 2, 2), np.repeat(plain.indices, 2), plain.indptr * 2), shape=plain.shape
    )
    for given in (shuffled, halves):
        before = given.indices.copy()
        np.testing.assert_allclose(warpfuse.Ridge().fit(given, y).coef_, expected, rtol=1e-9)
        np.testing.assert_array_equal(given.indices, before)


def test_targets_of_any_type_are_the_same_numbers(rng):
    X, _ = data(rng, 3_000)
    counts = rng.integers(0, 9, len(X))
    expected = warpfuse.Ridge().fit(X, counts.astype(np.float64)).coef_
    for dtype in (np.int64, np.int32, np.uint8, np.float32):
        np.testing.assert_array_equal(warpfuse.Ridge().fit(X, counts.astype(dtype)).coef_, expected)
    narrow = warpfuse.Ridge().fit(X.astype(np.float32), counts.astype(np.float64)).coef_
    np.testing.assert_array_equal(narrow, warpfuse.Ridge().fit(X.astype(np.float32), counts.astype(np.float32)).coef_)


def test_it_warns_with_advice(rng):
    X, y = data(rng, 300, 20)
    with pytest.warns(ConvergenceWarning, match="failed to converge.*raise max_iter"):
        warpfuse.LogisticRegression(max_iter=1, C=100.0).fit(X, y > 0)


def test_progress_is_told(rng):
    X, y = data(rng)
    told = []
    with warpfuse.config_context(progress=lambda *step: told.append(step)):
        warpfuse.LogisticRegression().fit(X, y > 0)
    assert [step[0] for step in told] == list(range(1, len(told) + 1)) and len(told) > 2
    objectives = [step[1] for step in told]
    assert objectives == sorted(objectives, reverse=True)


def test_what_progress_raises_ends_the_fit(rng):
    X, y = data(rng)

    def stop(iteration, objective, ratio):
        raise LookupError("enough")

    with warpfuse.config_context(progress=stop), pytest.raises(LookupError, match="enough"):
        warpfuse.LogisticRegression().fit(X, y > 0)
    warpfuse.LogisticRegression().fit(X, y > 0)


def test_ctrl_c_ends_a_fit(rng):
    X, y = data(rng)

    def interrupt(iteration, objective, ratio):
        os.kill(os.getpid(), signal.SIGINT)

    # A process that was started in the background ignores SIGINT, and so does Python then.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with warpfuse.config_context(progress=interrupt), pytest.raises(KeyboardInterrupt):
            warpfuse.LogisticRegression().fit(X, y > 0)
    finally:
        signal.signal(signal.SIGINT, before)


def test_threads_fit_side_by_side(rng):
    X, y = data(rng, 500, 10)
    expected, found = warpfuse.Ridge().fit(X, y).coef_, {}

    def fit(number):
        with warpfuse.config_context(device="cpu"):
            found[number] = warpfuse.Ridge().fit(X, y).coef_

    threads = [threading.Thread(target=fit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(np.array_equal(coef, expected) for coef in found.values())


def run(program, *arguments):
    return subprocess.run(
        [sys.executable, *arguments, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )


def test_a_forked_process_is_told():
    end = run(
        "import os, warpfuse\n"
        "warpfuse.Ridge().fit([[0.0], [1.0]], [0.0, 1.0])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        warpfuse.Ridge().fit([[0.0], [1.0]], [0.0, 1.0])\n"
        "    except RuntimeError as error:\n"
        "        os._exit(0 if 'fork' in str(error) else 1)\n"
        "    os._exit(2)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert end.returncode == 0, end.stderr


def test_importing_is_light():
    end = run("import sys, warpfuse; print([m for m in ('sklearn', 'scipy', 'pandas') if m in sys.modules])")
    assert end.stdout.strip() == "[]", end.stderr


def test_it_goes_into_scikit_learns_tools(rng):
    X, y = data(rng, 150)
    codes = np.where(y > 0, "yes", "no")
    search = GridSearchCV(
        make_pipeline(StandardScaler(), warpfuse.LogisticRegression()), {"logisticregression__C": [0.1, 1.0]}, cv=3
    )
    assert search.fit(X, codes).best_score_ > 0.9
    calibrated = CalibratedClassifierCV(warpfuse.LinearSVC(), cv=3).fit(X, codes)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
    model = search.best_estimator_
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_a_warm_start_begins_at_the_solution(rng):
    X, y = data(rng, 300, 10)
    codes = y + 3 * rng.normal(size=300) > 0
    model = warpfuse.LogisticRegression(warm_start=True, C=10.0).fit(X, codes)
    cold, coef = model.n_iter_[0], model.coef_.copy()
    assert model.fit(X, codes).n_iter_[0] < cold
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-6)


def test_the_matrix(rng):
    A = rng.normal(size=(30, 5))
    for form in (A, sparse.csr_matrix(A), np.asfortranarray(A)):
        X = warpfuse.Matrix(form, evaluations=10)
        y, v, z, p = rng.normal(size=5), rng.random(30), rng.normal(size=5), rng.normal(size=30)
        np.testing.assert_allclose(X @ y, A @ y, rtol=1e-12)
        np.testing.assert_allclose(X.T @ p, A.T @ p, rtol=1e-12, atol=1e-12)
        found = X.fused(y, v, z, alpha=2.0, beta=-1.0)
        np.testing.assert_allclose(found, 2.0 * A.T @ (v * (A @ y)) - z, rtol=1e-11)
        loss, gradient = X.objective("squared", y, p, v)
        np.testing.assert_allclose(loss, 0.5 * (v * (A @ y - p) ** 2).sum(), rtol=1e-12)
        np.testing.assert_allclose(gradient, A.T @ (v * (A @ y - p)), rtol=1e-11)
        np.testing.assert_allclose(lsqr(X, p)[0], np.linalg.lstsq(A, p)[0], rtol=1e-5)
    with pytest.raises(ValueError, match="must have the shape"):
        X.fused(np.ones(4))
    assert "processor" in str(X.plan()) and "<pre>" in X.plan()._repr_html_()


def test_rankings(rng):
    graph = sparse.csr_array(rng.random((20, 20)) < 0.2, dtype=np.float64)
    hubs, authorities = warpfuse.hits(graph, max_iter=1000)
    product = graph.T @ (graph @ authorities)
    np.testing.assert_allclose(product / product.sum(), authorities, atol=1e-6)
    np.testing.assert_allclose([hubs.sum(), authorities.sum(), warpfuse.pagerank(graph).sum()], 1.0)


def test_predictions_of_large_x_are_the_same(rng):
    X, y = data(rng, 60_000, 4)
    model = warpfuse.Ridge().fit(X, y)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_, rtol=1e-10, atol=1e-10)
    classifier = warpfuse.LogisticRegression().fit(X[:500], np.digitize(y[:500], [-2, 2]))
    expected = X @ classifier.coef_.T + classifier.intercept_
    np.testing.assert_allclose(classifier.decision_function(X), expected, rtol=1e-9, atol=1e-9)


def test_accelerated_scripts(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from sklearn.linear_model import LogisticRegression, Ridge\n"
        "assert Ridge.__module__.startswith('warpfuse.linear_model'), Ridge\n"
        "Ridge().fit([[0.0], [1.0]], [0.0, 1.0])\n"
        "LogisticRegression(solver='liblinear').fit([[0.0], [1.0]], [0, 1])\n"
        "print(sys.argv[1])\n"
    )
    command = [sys.executable, "-m", "warpfuse", "--report", str(script), "argument"]
    end = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert end.stdout == "argument\n", end.stderr
    assert "Ridge: 1 fits" in end.stderr and "by scikit-learn: solver='liblinear'" in end.stderr


def test_the_command_line_program():
    program = "import sys; from warpfuse._cli import main; sys.argv[1:] = ['info']; raise SystemExit(main())"
    end = run(program)
    assert end.returncode == 0 and "cpu" in end.stdout.lower(), end.stderr
    program = "import sys; from warpfuse._cli import main; sys.argv[1:] = ['fly']; raise SystemExit(main())"
    assert run(program).returncode == 2


def test_a_signal_ends_a_long_solve():
    # A million steps of a walk that hardly ever jumps, on X so large that each takes its time.
    end = run(
        "import signal, numpy as np, warpfuse\n"
        "def raised(number, frame):\n"
        "    raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGALRM, raised)\n"
        "X = np.random.default_rng(1).random((400, 400))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
        "try:\n"
        "    warpfuse.pagerank(X, damping=1.0, tol=0.0, max_iter=10**9)\n"
        "except KeyboardInterrupt:\n"
        "    print('ended')\n"
        "print(warpfuse.Ridge(alpha=2.0).fit([[0.0], [1.0], [2.0]], [0.0, 2.0, 4.0]).coef_)\n"
    )
    assert end.stdout.split()[:1] == ["ended"], end.stderr


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_x_by_the_name_of_a_file(dtype, tmp_path, rng):
    X, y = data(rng, 60)
    X[X < 0] = 0.0
    svmlight = tmp_path / "data.svm"
    dump_svmlight_file(X, y, str(svmlight), zero_based=False)
    for _ in range(2):
        placed = warpfuse.Dataset.from_file(svmlight, dtype=dtype, cache=True)
        assert placed.shape == X.shape and placed.dtype == dtype and placed.nnz == np.count_nonzero(X)
        np.testing.assert_allclose(placed.target, y, rtol=1e-6)
        ours = warpfuse.Ridge().fit(placed, placed.target)
        np.testing.assert_allclose(ours.coef_, warpfuse.Ridge().fit(X, y).coef_, rtol=1e-3)
    assert len(list(tmp_path.iterdir())) == 2, "a binary file lies next to the text"
    wide = warpfuse.Dataset.from_file(svmlight, n_features=9)
    assert wide.shape == (60, 9)
    with pytest.raises(FileNotFoundError):
        warpfuse.Dataset.from_file(tmp_path / "none.svm")
    (tmp_path / "bad.svm").write_text("1 1:x\n")
    with pytest.raises(ValueError, match="bad.svm:1:"):
        warpfuse.Dataset.from_file(tmp_path / "bad.svm")


PATHS = [
    (warpfuse.Ridge(), "alpha", [0.1, 1.0, 100.0]),
    (warpfuse.Ridge(positive=True, tol=1e-8), "alpha", [0.1, 100.0]),
    (warpfuse.ElasticNet(tol=1e-8), "alpha", [1.0, 0.1, 0.01]),
    (warpfuse.PoissonRegressor(tol=1e-8, max_iter=1000), "alpha", [1.0, 0.01]),
    (warpfuse.LogisticRegression(tol=1e-8), "C", [0.01, 1.0]),
    (warpfuse.LinearSVC(tol=1e-8), "C", [0.01, 1.0]),
]


@pytest.mark.parametrize(("model", "name", "values"), PATHS, ids=[str(path[0]) for path in PATHS])
def test_scores_along_a_path(model, name, values, rng):
    X, y = data(rng, 120)
    y = y + 2 * rng.normal(size=120)
    if name == "C":
        y = np.where(y > 0, "yes", "no")
    elif isinstance(model, warpfuse.PoissonRegressor):
        y = np.exp(y / 8)
    elif getattr(model, "positive", False):
        y = -y
    found = warpfuse.path_scores(model, sparse.csr_array(X), y, param_name=name, param_range=values, cv=4)
    _, expected = validation_curve(model, X, y, param_name=name, param_range=values, cv=4)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="twice"):
        splits = ShuffleSplit(3, test_size=0.5, random_state=0)
        warpfuse.path_scores(model, X, y, param_name=name, param_range=values, cv=splits)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_reductions(dtype, rng):
    values = rng.integers(-50, 50, size=(37, 11)).astype(dtype)
    values[3, 4] = 0
    for name in ("sum", "mean", "var", "min", "max", "argmin", "argmax", "count_nonzero"):
        expected = np.count_nonzero(values) if name == "count_nonzero" else getattr(values.astype(np.float64), name)()
        assert warpfuse.reduce(values, name) == pytest.approx(expected, rel=1e-14)
    assert warpfuse.reduce(values, "norm1") == np.abs(values).sum()
    assert warpfuse.reduce(values, "norm2") == pytest.approx(np.linalg.norm(values.astype(np.float64)), rel=1e-14)
    assert warpfuse.reduce([], "sum") == 0.0
    with pytest.raises(ValueError, match="max of no elements"):
        warpfuse.reduce([], "max")
    with pytest.raises(ValueError, match="operation must be one of"):
        warpfuse.reduce([1.0], "median")
