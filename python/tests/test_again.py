"""A fit that was fitted before with other data or numbers goes a short way: with what the long way would have set, said and raised."""

import warnings

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import warpfuse
from warpfuse import _again, kernel_ridge
from warpfuse._linear import LinearFit

MODELS = [
    warpfuse.Ridge(),
    warpfuse.Ridge(solver="cholesky", fit_intercept=False),
    warpfuse.LinearRegression(),
    warpfuse.LinearRegression(positive=True),
    warpfuse.Lasso(alpha=0.1),
    warpfuse.ElasticNet(alpha=0.1, fit_intercept=False),
    warpfuse.LogisticRegression(),
    warpfuse.LogisticRegression(C=np.inf, fit_intercept=False),
    warpfuse.LinearSVC(),
    warpfuse.LinearSVC(loss="hinge", fit_intercept=False),
    warpfuse.LinearSVR(),
    warpfuse.LinearSVR(loss="squared_epsilon_insensitive", fit_intercept=False),
    warpfuse.PoissonRegressor(),
    warpfuse.GammaRegressor(fit_intercept=False),
    warpfuse.TweedieRegressor(power=1.5),
    warpfuse.GeneralizedLinearRegressor("poisson", "sqrt", alpha=0.01),
    warpfuse.HuberRegressor(),
    warpfuse.QuantileRegressor(alpha=0.05),
    warpfuse.KernelRidge(kernel="rbf"),
    warpfuse.KernelRidge(kernel="laplacian", gamma=0.3),
]


@pytest.fixture(autouse=True)
def nothing_prepared(monkeypatch):
    monkeypatch.setattr(_again, "_prepared", {})


def data(model, dtype="float64", rows=60, classes=2):
    rng = np.random.default_rng(rows)
    X = rng.standard_normal((rows, 4)).astype(dtype)
    y = X @ np.arange(4.0) + rng.standard_normal(rows)
    if hasattr(model, "predict_proba") or isinstance(model, warpfuse.LinearSVC):
        return X, np.digitize(y, np.quantile(y, np.arange(1, classes) / classes)) * 10
    return X, (np.abs(y) + 0.1).astype(dtype)


def prepared(model, X, y):
    """The model after the fit from which on one with its parameters goes the short way."""
    return model.fit(X, y)


def forbid(monkeypatch):
    def fails(*_arguments, **_named):
        raise AssertionError("it went the long way")

    monkeypatch.setattr(LinearFit, "_fit_checked", fails)
    monkeypatch.setattr(kernel_ridge.KernelRidge, "_fit_checked", fails)


def goes_the_short_way(monkeypatch, model, X, y):
    with monkeypatch.context() as patch:
        forbid(patch)
        try:
            model.fit(X, y)
        except AssertionError:
            return False
    return True


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_all_attributes_are_those_of_the_long_way(monkeypatch, model, dtype):
    others, (X, y) = data(model, dtype, rows=80), data(model, dtype)
    expected = vars(clone(model).fit(X, y))
    again = prepared(clone(model), *others)
    before = warpfuse.fits()[type(model).__name__]["served"]
    assert goes_the_short_way(monkeypatch, again, X, y)
    assert warpfuse.fits()[type(model).__name__]["served"] == before + 1
    found = vars(again)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert type(found[name]) is type(value), name
        if isinstance(value, np.ndarray | np.generic):
            assert found[name].dtype == value.dtype and found[name].shape == value.shape, name
        if name != "_base_loss":
            np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("of", ["int64", "int32", "uint8", "bool"])
def test_labels_and_counts_that_are_no_floats(monkeypatch, of):
    for model in (warpfuse.LogisticRegression(), warpfuse.PoissonRegressor()):
        X, y = data(model)
        y = (y > np.median(y)).astype(of)
        expected = clone(model).fit(X, y)
        again = prepared(model, X, y)
        assert goes_the_short_way(monkeypatch, again, X, y)
        np.testing.assert_array_equal(again.coef_, expected.coef_)
        np.testing.assert_array_equal(getattr(again, "classes_", None), getattr(expected, "classes_", None))


OF_CSR = [model for model in MODELS if type(model) is not warpfuse.KernelRidge and getattr(model, "solver", "") != "cholesky"]


def thinned(X, index=np.int32):
    found = sparse.csr_matrix(np.where(X > -0.5, X, 0))
    found.indices, found.indptr = found.indices.astype(index), found.indptr.astype(index)
    return found


@pytest.mark.parametrize(("dtype", "index"), [("float32", "int32"), ("float64", "int64")])
@pytest.mark.parametrize("model", OF_CSR, ids=repr)
def test_sparse_rows_are_those_of_the_long_way(monkeypatch, model, dtype, index):
    (other, of_other), (X, y) = data(model, dtype, rows=80), data(model, dtype)
    other, X = thinned(other), thinned(X, index)
    weights = np.random.default_rng(1).random(len(y))
    expected = vars(clone(model).fit(X, y, weights))
    monkeypatch.setattr(_again, "_prepared", {})
    again = prepared(clone(model), other, of_other)
    with monkeypatch.context() as patch:
        forbid(patch)
        again.fit(X, y, weights)
    found = vars(again)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert type(found[name]) is type(value), name
        if name != "_base_loss":
            np.testing.assert_array_equal(found[name], value, err_msg=name)
    X = X.copy()
    X.data[5] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        again.fit(X, y)


def test_sparse_rows_that_go_the_long_way(monkeypatch):
    model = warpfuse.Ridge()
    X, y = data(model)
    X = thinned(X)
    prepared(model, X, y)
    unsorted, twice, beyond, negative = (X.copy() for _ in range(4))
    unsorted.indices[:2] = unsorted.indices[:2][::-1]
    twice.indices[1] = twice.indices[0]
    for other in (unsorted, twice):
        assert not goes_the_short_way(monkeypatch, model, sparse.csr_matrix((other.data, other.indices, other.indptr)), y)
    assert not goes_the_short_way(monkeypatch, model, X.tocsc(), y)
    assert not goes_the_short_way(monkeypatch, model, X.toarray(), y)
    assert not goes_the_short_way(monkeypatch, warpfuse.Ridge(solver="svd"), X, y)
    assert goes_the_short_way(monkeypatch, model, sparse.csr_array(X), y)
    beyond.indptr[-1] += 1000
    negative.indices[3] = 4
    for other in (beyond, negative):
        with pytest.raises(ValueError):
            model.fit(other, y)


@pytest.mark.parametrize("model", MODELS[:-2], ids=repr)
def test_weights(monkeypatch, model):
    X, y = data(model)
    weights = np.random.default_rng(1).random(len(y)) * (np.arange(len(y)) % 5 > 0)
    expected = vars(clone(model).fit(X, y, weights))
    again = prepared(clone(model), X, y)
    with monkeypatch.context() as patch:
        forbid(patch)
        again.fit(X, y, weights)
    for name, value in expected.items():
        if name != "_base_loss":
            np.testing.assert_array_equal(vars(again)[name], value, err_msg=name)
    for bad, what in [(-weights, "Negative values"), (weights[1:], "sample_weight.shape"), (np.full(len(y), np.nan), "NaN")]:
        with pytest.raises(ValueError, match=what):
            again.fit(X, y, bad)
    with pytest.raises(ValueError):
        again.fit(X, y, np.zeros(len(y)))
    lists = clone(model).fit(X, y, weights.tolist())
    np.testing.assert_array_equal(lists.coef_, expected["coef_"])


@pytest.mark.parametrize("model", [warpfuse.LogisticRegression(), warpfuse.LinearSVC()], ids=repr)
@pytest.mark.parametrize("classes", [2, 4])
def test_text_as_labels(monkeypatch, model, classes):
    X, y = data(model, classes=classes)
    y = np.array([f"class {label:02}" for label in y])
    expected = vars(clone(model).fit(X, y))
    again = clone(model)
    assert goes_the_short_way(monkeypatch, again, X, y)
    for name, value in expected.items():
        assert type(vars(again)[name]) is type(value), name
        np.testing.assert_array_equal(vars(again)[name], value, err_msg=name)
    assert again.predict(X).dtype == y.dtype
    with pytest.raises(ValueError, match="at least 2 classes"):
        again.fit(X, np.full(len(X), "one"))
    regression = prepared(warpfuse.Ridge(), X, np.arange(len(X)) * 1.0)
    with pytest.raises(ValueError, match="could not convert string to float|convert"):
        regression.fit(X, y)


@pytest.mark.parametrize(
    "model",
    [warpfuse.Ridge(), warpfuse.LinearRegression(), warpfuse.LogisticRegression(), warpfuse.LinearSVC(), warpfuse.PoissonRegressor()],
    ids=repr,
)
def test_large_arrays(monkeypatch, model):
    X, y = data(model, "float32", rows=60_000)
    weights = np.random.default_rng(1).random(len(y)) * (np.arange(len(y)) % 5 > 0)
    expected = vars(clone(model).fit(X, y, weights))
    again = prepared(clone(model), X[:50_000], y[:50_000])
    with monkeypatch.context() as patch:
        forbid(patch)
        again.fit(X, y, weights)
    for name, value in expected.items():
        if name != "_base_loss":
            np.testing.assert_array_equal(vars(again)[name], value, err_msg=name)
    for value, what in [(np.nan, "Input X contains NaN"), (np.inf, "Input X contains infinity")]:
        bad = X.copy()
        bad[50_000, 1] = value
        with pytest.raises(ValueError, match=what):
            again.fit(bad, y)
    for bad, what in [(-weights, "Negative values"), (weights[1:], "sample_weight.shape"), (np.full(len(y), np.nan), "NaN")]:
        for other in (again, type(model)(tol=0.37)):
            with pytest.raises(ValueError, match=what):
                other.fit(X, y, bad)


def test_several_classes(monkeypatch):
    model = warpfuse.LogisticRegression()
    X, y = data(model, classes=4)
    expected = clone(model).fit(X, y)
    again = prepared(model, *data(model, rows=90))
    assert goes_the_short_way(monkeypatch, again, X, y)
    for name in ("classes_", "coef_", "intercept_", "n_iter_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(expected, name), err_msg=name)


def test_a_clone_and_a_few_sets_of_parameters_are_known(monkeypatch):
    X, y = data(warpfuse.Ridge())
    for alpha in (1.0, 2.0, np.float64(3.0)):
        prepared(warpfuse.Ridge(alpha=alpha), X, y)
    for alpha in (1.0, 2.0, np.float64(3.0)):
        model = clone(warpfuse.Ridge(alpha=alpha))
        assert goes_the_short_way(monkeypatch, model, X, y), alpha
        expected = warpfuse.Ridge(alpha=alpha).fit(X.tolist(), y).coef_
        np.testing.assert_allclose(model.coef_, expected, rtol=1e-12)


def test_others_go_the_long_way(monkeypatch):
    model = warpfuse.Ridge()
    X, y = data(model)
    prepared(model, X, y)
    long = [
        (warpfuse.Ridge(solver="svd"), X, y),
        # The same number of another type, which the checks may refuse.
        (warpfuse.Ridge(alpha=True), X, y),
        (warpfuse.Ridge(alpha=np.float32(2)), X, y),
        (warpfuse.Ridge(), pandas.DataFrame(X, columns=list("abcd")), y),
        (warpfuse.Ridge(), sparse.csr_array(X), y),
        (warpfuse.Ridge(), X.astype(int), y),
        (warpfuse.Ridge(), X, y.tolist()),
        (warpfuse.Ridge(), X, np.stack([y, y], 1)),
        (warpfuse.Ridge(), np.zeros((2, 1001)), np.zeros(2)),
        (warpfuse.Lasso(), np.zeros((50_001, 2)), np.zeros(50_001)),
        (warpfuse.Ridge(), sparse.csr_matrix(np.ones((50_001, 2))), np.zeros(50_001)),
        (type("Mine", (warpfuse.Ridge,), {})(), X, y),
    ]
    for other, *given in long:
        monkeypatch.setattr(_again, "_prepared", {})
        prepared(warpfuse.Ridge(), X, y)
        assert not goes_the_short_way(monkeypatch, other, *given), (other, given)
    with warpfuse.config_context(progress=lambda *_: None):
        assert not goes_the_short_way(monkeypatch, model, X, y)
    with warpfuse.config_context(device="cuda:7"):
        assert not goes_the_short_way(monkeypatch, model, X, y)
    watched = warpfuse.Ridge()
    watched._skl_callbacks = [None]
    assert not goes_the_short_way(monkeypatch, watched, X, y)
    assert goes_the_short_way(monkeypatch, model, X, y)


@pytest.mark.parametrize(
    "model",
    [
        warpfuse.Lasso(warm_start=True),
        warpfuse.Lasso(alpha=0),
        warpfuse.PoissonRegressor(warm_start=True),
        warpfuse.LogisticRegression(class_weight="balanced"),
        warpfuse.LogisticRegression(penalty="l2"),
        warpfuse.Ridge(alpha=np.ones(1)),
        warpfuse.Ridge(positive=True),
        warpfuse.Ridge(solver="sag"),
        warpfuse.KernelRidge(),
        warpfuse.LinearSVC(penalty="l1", dual=False, C=0.05),
        warpfuse.LinearSVC(multi_class="crammer_singer"),
        warpfuse.LogisticRegression(max_iter=0),
        warpfuse.HuberRegressor(max_iter=0),
    ],
    ids=repr,
)
def test_parameters_that_a_fit_has_more_to_do_for(monkeypatch, model):
    X, y = data(model)
    # The processor is open: it is not for want of a device that the way is long.
    warpfuse.Ridge().fit(X, np.arange(len(X)))
    with warnings.catch_warnings(), warpfuse.config_context(fallback="silent"):
        warnings.simplefilter("ignore")
        prepared(model, X, y)
        assert not goes_the_short_way(monkeypatch, model, X, y)


@pytest.mark.parametrize(
    "model", [warpfuse.PoissonRegressor(max_iter=1), warpfuse.LogisticRegression(max_iter=1), warpfuse.HuberRegressor(max_iter=1)], ids=repr
)
def test_warnings_are_said_again(monkeypatch, model):
    X, y = data(model, rows=200)
    with pytest.warns(ConvergenceWarning):
        prepared(model, X, y)
    with pytest.warns(ConvergenceWarning, match="1 iterations of warpfuse"):
        assert goes_the_short_way(monkeypatch, model, X, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_values_that_are_not_finite_are_named(model, dtype):
    X, y = data(model, dtype)
    again = prepared(clone(model), X, y)
    for value, what in [(np.nan, "Input X contains NaN"), (np.inf, "Input X contains infinity"), (-np.inf, "Input X contains infinity")]:
        for order in "CF":
            bad = np.array(X, order=order)
            bad[37, 2] = value
            with pytest.raises(ValueError, match=what):
                again.fit(bad, y)
    if y.dtype.kind == "f":
        bad = y.copy()
        bad[11] = np.nan
        with pytest.raises(ValueError, match="Input y contains NaN"):
            again.fit(X, bad)


def numbers(model):
    """Others that the parameters may be."""
    names = _again._changing(type(model))
    for name in names.keys() & model.get_params().keys():
        value = getattr(model, name)
        if value is not None and name == "max_iter":
            yield name, value + 1
        elif value is not None and names[name][0] < value < names[name][1]:
            yield name, value * 0.75 + 0.25 * min(names[name][1], 1.25 * value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_other_numbers_give_what_the_long_way_gives(monkeypatch, model, dtype):
    X, y = data(model, dtype)
    prepared(clone(model), X, y)
    for name, value in numbers(model):
        for number in {value, type(value)(value), np.float64(value) if isinstance(value, float) else value}:
            again = clone(model).set_params(**{name: number})
            assert goes_the_short_way(monkeypatch, again, X, y), (name, number)
            with monkeypatch.context() as patch:
                patch.setattr(_again, "_prepared", {})
                expected = vars(clone(model).set_params(**{name: number}).fit(X, y))
            for attribute, of in expected.items():
                if attribute != "_base_loss":
                    np.testing.assert_array_equal(vars(again)[attribute], of, err_msg=f"{name} {attribute}")


def test_every_class_takes_other_numbers():
    more = [
        warpfuse.GeneralizedLinearRegressor("tweedie", "power", l1_ratio=0.5, link_power=0.5),
        warpfuse.Ridge(max_iter=50),
        warpfuse.LinearSVR(epsilon=0.1),
    ]
    taken = {}
    for model in MODELS + more:
        taken.setdefault(type(model).__name__, set()).update(name for name, _ in numbers(model))
    usual = {"tol", "max_iter"}
    assert taken == {
        "Ridge": usual | {"alpha"},
        "LinearRegression": {"tol"},
        "Lasso": usual | {"alpha"},
        "ElasticNet": usual | {"alpha", "l1_ratio"},
        "LogisticRegression": usual | {"C"},
        "LinearSVC": usual | {"C", "intercept_scaling"},
        "LinearSVR": usual | {"C", "intercept_scaling", "epsilon"},
        "PoissonRegressor": usual | {"alpha"},
        "GammaRegressor": usual | {"alpha"},
        "TweedieRegressor": usual | {"alpha", "power"},
        "GeneralizedLinearRegressor": usual | {"alpha", "power", "l1_ratio", "link_power"},
        "HuberRegressor": usual | {"alpha", "epsilon"},
        "QuantileRegressor": {"alpha", "quantile"},
        "KernelRidge": {"alpha", "gamma"},
    }


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        (warpfuse.Ridge(), "alpha", 0.0),
        (warpfuse.Ridge(), "alpha", np.float32(2.0)),
        (warpfuse.Ridge(), "alpha", np.array(2.0)),
        (warpfuse.Ridge(), "max_iter", 5),
        (warpfuse.Ridge(max_iter=5), "max_iter", 1),
        (warpfuse.Ridge(max_iter=5), "max_iter", None),
        (warpfuse.Lasso(), "alpha", 0),
        (warpfuse.ElasticNet(), "l1_ratio", 1.0),
        (warpfuse.ElasticNet(), "l1_ratio", 0.0),
        (warpfuse.LogisticRegression(), "C", np.inf),
        (warpfuse.LogisticRegression(), "max_iter", 0),
        (warpfuse.LogisticRegression(), "l1_ratio", 0.5),
        (warpfuse.TweedieRegressor(power=1.5), "power", 0.0),
        (warpfuse.TweedieRegressor(power=1.5), "power", 2.0),
        (warpfuse.HuberRegressor(), "epsilon", 1.0),
        (warpfuse.KernelRidge(kernel="rbf"), "gamma", 0.5),
        (warpfuse.KernelRidge(kernel="rbf", gamma=0.5), "gamma", None),
    ],
    ids=repr,
)
def test_numbers_with_a_meaning_of_their_own_go_the_long_way(monkeypatch, model, name, value):
    X, y = data(model)
    prepared(clone(model), X, y)
    assert not goes_the_short_way(monkeypatch, clone(model).set_params(**{name: value}), X, y)


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        (warpfuse.Ridge(), "alpha", -1.0),
        (warpfuse.Ridge(), "alpha", "2"),
        (warpfuse.Ridge(), "alpha", np.nan),
        (warpfuse.Ridge(), "tol", -1.0),
        (warpfuse.Lasso(), "max_iter", 7.0),
        (warpfuse.ElasticNet(), "l1_ratio", 1.5),
        (warpfuse.LogisticRegression(), "C", 0.0),
        (warpfuse.LinearSVC(), "C", False),
        (warpfuse.QuantileRegressor(), "quantile", 1.0),
        (warpfuse.HuberRegressor(), "epsilon", 0.5),
        (warpfuse.KernelRidge(kernel="rbf", gamma=0.5), "gamma", -1.0),
    ],
    ids=repr,
)
def test_numbers_that_are_not_valid_are_refused(model, name, value):
    X, y = data(model)
    prepared(clone(model), X, y)
    with pytest.raises(ValueError, match=f"The '{name}' parameter of {type(model).__name__} must be"):
        clone(model).set_params(**{name: value}).fit(X, y)


def test_what_is_wrong_is_told_in_the_words_of_the_long_way():
    model = warpfuse.PoissonRegressor()
    X, y = data(model)
    prepared(model, X, y)
    with pytest.raises(ValueError, match="out of the valid range of the loss 'HalfPoissonLoss'"):
        model.fit(X, -y)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(np.where(X > 1, np.nan, X), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[1:])
    labels = prepared(warpfuse.LogisticRegression(), X, (y > 1).astype(int))
    with pytest.raises(ValueError, match="at least 2 classes"):
        labels.fit(X, np.ones(len(X), int))


def test_long_fits_leave_what_others_have_prepared(monkeypatch):
    model, other = warpfuse.Ridge(), warpfuse.Ridge(solver="cholesky")
    X, y = data(model)
    prepared(model, X, y)
    for _ in range(8):
        other.fit(np.asfortranarray(X), y.tolist())
    assert goes_the_short_way(monkeypatch, model, X, y)
    assert len(_again._prepared[warpfuse.Ridge]) == 2


def test_names_of_features_are_forgotten(monkeypatch):
    model = warpfuse.Ridge()
    X, y = data(model)
    prepared(model, X, y)
    model.fit(pandas.DataFrame(X[:, :3], columns=list("abc")), y)
    assert goes_the_short_way(monkeypatch, model, X, y)
    assert model.n_features_in_ == 4 and not hasattr(model, "feature_names_in_")


def test_pairs_of_points_decide_on_the_device(monkeypatch):
    model = warpfuse.KernelRidge(kernel="rbf")
    for rows, is_small in [(999, True), (1_000, False)]:
        X, y = data(model, rows=rows)
        prepared(model, X, y)
        with warpfuse.config_context(device="auto"):
            assert goes_the_short_way(monkeypatch, model, X, y) == is_small
        assert goes_the_short_way(monkeypatch, model, X, y)
