"""A fit that was fitted before with other numbers goes a short way: with what the long way would have set, said and raised."""

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
    """The model after the fits from which on one with its parameters goes the short way."""
    return model.fit(X, y).fit(X, y)


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
        expected = warpfuse.Ridge(alpha=alpha).fit(np.asfortranarray(X), y).coef_
        np.testing.assert_allclose(model.coef_, expected, rtol=1e-12)


def test_others_go_the_long_way(monkeypatch):
    model = warpfuse.Ridge()
    X, y = data(model)
    prepared(model, X, y)
    long = [
        (warpfuse.Ridge(alpha=2.0), X, y),
        # The same number of another type, which the checks may refuse.
        (warpfuse.Ridge(alpha=True), X, y),
        (warpfuse.Ridge(), pandas.DataFrame(X, columns=list("abcd")), y),
        (warpfuse.Ridge(), sparse.csr_array(X), y),
        (warpfuse.Ridge(), X.astype(int), y),
        (warpfuse.Ridge(), X, y.tolist()),
        (warpfuse.Ridge(), X, np.stack([y, y], 1)),
        (warpfuse.Ridge(), np.zeros((2, 1001)), np.zeros(2)),
        (warpfuse.Ridge(), np.zeros((50_001, 2)), np.zeros(50_001)),
        (type("Mine", (warpfuse.Ridge,), {})(), X, y),
    ]
    for other, *given in long:
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
    model, other = warpfuse.Ridge(), warpfuse.Ridge(alpha=2)
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
