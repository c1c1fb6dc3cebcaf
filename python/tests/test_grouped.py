"""Models of groups are those of fits to each group's rows alone."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import linear_model as peers
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

import warpfuse
from warpfuse import _native, fit_groups

ROWS, COLUMNS = 300, 3
#: Not sorted, and not of one size.
NAMES = np.array(["south", "north", "east", "west", "centre"])
ESTIMATORS = [
    warpfuse.LinearRegression(),
    warpfuse.Ridge(alpha=0.7),
    warpfuse.Ridge(alpha=0.7, fit_intercept=False),
    warpfuse.Ridge(alpha=0.7, positive=True),
    warpfuse.Lasso(alpha=0.02, tol=1e-8),
    warpfuse.ElasticNet(alpha=0.02, tol=1e-8),
    warpfuse.PoissonRegressor(alpha=0.1),
    warpfuse.GammaRegressor(alpha=0.1),
    warpfuse.TweedieRegressor(power=1.5, alpha=0.1),
    warpfuse.GeneralizedLinearRegressor(family="poisson", link="sqrt", alpha=0.1),
    warpfuse.HuberRegressor(tol=1e-8),
    warpfuse.QuantileRegressor(alpha=0.01),
    warpfuse.LinearSVR(loss="squared_epsilon_insensitive"),
    warpfuse.LogisticRegression(C=2.0),
    warpfuse.LogisticRegression(C=2.0, class_weight={"no": 1.0, "yes": 3.0}),
    warpfuse.LinearSVC(C=0.5),
]


@pytest.fixture
def data(rng):
    X = rng.normal(size=(ROWS, COLUMNS))
    groups = NAMES[rng.integers(0, len(NAMES), ROWS) * rng.integers(0, 2, ROWS)]
    y = np.exp(X @ [0.4, -0.3, 0.2] * (1 + (groups == "north")) + 0.3 * rng.normal(size=ROWS))
    return X, y, groups


def targets_of(estimator, y):
    return np.where(y > 1, "yes", "no") if is_classifier(estimator) else y


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_models_are_those_of_fits_alone(estimator, weighted, data, rng):
    X, y, groups = data
    y = targets_of(estimator, y)
    weights = rng.integers(0, 3, ROWS).astype(float) if weighted else None
    models = fit_groups(estimator, X, y, groups, weights)
    np.testing.assert_array_equal(models.groups_, np.unique(groups))
    assert models.converged_.all() and not models.reasons_
    predicted = models.predict(X, groups)
    for at, group in enumerate(models.groups_):
        own = groups == group
        alone = clone(estimator).fit(X[own], y[own], sample_weight=None if weights is None else weights[own])
        np.testing.assert_allclose(models.coef_[at], np.ravel(alone.coef_), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(models.intercept_[at], np.ravel(alone.intercept_)[0], rtol=1e-5, atol=1e-6)
        like = models.estimator_of(group)
        assert type(like) is type(alone) and like.get_params() == estimator.get_params()
        np.testing.assert_array_equal(like.coef_.shape, alone.coef_.shape)
        if is_classifier(estimator):
            np.testing.assert_array_equal(like.predict(X[own]), predicted[own])
        else:
            np.testing.assert_allclose(like.predict(X[own]), predicted[own], rtol=1e-12)
    assert not hasattr(estimator, "coef_")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (warpfuse.Ridge(alpha=0.7), peers.Ridge(alpha=0.7)),
        (warpfuse.PoissonRegressor(alpha=0.1), peers.PoissonRegressor(alpha=0.1, tol=1e-10)),
        (warpfuse.LogisticRegression(C=2.0), peers.LogisticRegression(C=2.0, tol=1e-10)),
    ],
    ids=str,
)
def test_models_are_those_of_scikit_learn(ours, theirs, data):
    X, y, groups = data
    y = targets_of(ours, y)
    models = fit_groups(ours, X, y, groups)
    for at, group in enumerate(models.groups_):
        own = groups == group
        truth = clone(theirs).fit(X[own], y[own])
        np.testing.assert_allclose(models.coef_[at], np.ravel(truth.coef_), atol=1e-6)


@pytest.mark.parametrize("estimator", [warpfuse.Ridge(), warpfuse.LogisticRegression(), warpfuse.PoissonRegressor()], ids=str)
def test_kernels_make_the_same_models(estimator, data):
    try:
        _native.Device("emulator")
    except ValueError:
        pytest.skip("the extension was built without the feature `emulator`")
    X, y, groups = data
    truth = fit_groups(estimator, X, targets_of(estimator, y), groups)
    with warpfuse.config_context(device="emulator"):
        models = fit_groups(estimator, X, targets_of(estimator, y), groups)
    np.testing.assert_allclose(models.coef_, truth.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(models.status_, truth.status_)


def test_x_may_be_anything_that_holds_the_same_numbers(data):
    X, y, groups = data
    ridge = warpfuse.Ridge()
    truth = fit_groups(ridge, X, y, groups)
    csr = sparse.csr_array(X)
    wide = csr.copy()
    wide.indices, wide.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    frame = pd.DataFrame(X, columns=list("abc"))
    forms = [np.asfortranarray(X), csr, wide, sparse.coo_array(X), frame, X.tolist()]
    for form in forms:
        models = fit_groups(ridge, form, y, pd.Series(groups))
        np.testing.assert_allclose(models.coef_, truth.coef_, rtol=1e-12)
        np.testing.assert_allclose(models.predict(form, groups), truth.predict(X, groups), rtol=1e-12)
    named = fit_groups(ridge, frame, y, groups)
    assert list(named.estimator_of("east").feature_names_in_) == list("abc")
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(frame[["b", "a", "c"]], groups)
    single = fit_groups(ridge, X.astype(np.float32), y, groups)
    assert single.coef_.dtype == single.predict(X.astype(np.float32), groups).dtype == np.float32
    np.testing.assert_allclose(single.coef_, truth.coef_, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, float, bool, object, str])
def test_labels_of_groups_are_of_any_type(dtype, data):
    X, y, _ = data
    groups = (np.arange(ROWS) * 7 % 2).astype(dtype)
    models = fit_groups(warpfuse.Ridge(), X, y, groups)
    np.testing.assert_array_equal(models.groups_, np.unique(groups))
    assert models.groups_.dtype == groups.dtype
    one = models.groups_[1]
    np.testing.assert_allclose(models.predict(X[:4], [one] * 4), models.estimator_of(one).predict(X[:4]), rtol=1e-12)


def test_what_is_wrong_with_a_group_is_its_own(data):
    X, y, groups = data
    weights, labels = np.where(groups == "east", 0.0, 1.0), np.where(y > 1, 5, 3)
    labels[groups == "west"] = 5
    with pytest.warns(UserWarning, match="1 of 5 groups have no model, the first of them 'east': none of its rows has a weight"):
        models = fit_groups(warpfuse.LogisticRegression(), X, labels, groups, weights)
    status = dict(zip(models.groups_.tolist(), models.status_.tolist(), strict=True))
    assert (status["east"], status["west"], status["north"]) == ("failed", "one_class", "converged")
    assert list(models.reasons_) == ["east"] and np.isnan(models.coef_[models.groups_ == "east"]).all()
    west = groups == "west"
    assert (models.predict(X[west], groups[west]) == 5).all()
    np.testing.assert_array_equal(models.predict_proba(X[west], groups[west])[:, 1], 1.0)
    assert (models.estimator_of("west").predict(X) == 5).all()
    for use in (lambda: models.predict(X, groups), lambda: models.estimator_of("east")):
        with pytest.raises(ValueError, match="group 'east' has no model"):
            use()
    with pytest.warns(ConvergenceWarning, match="5 of 5 groups did not converge, the first of them 'centre'"):
        models = fit_groups(warpfuse.PoissonRegressor(alpha=0.0, max_iter=1), X, y, groups)
    assert not models.converged_.any() and set(models.status_) == {"iteration_limit"}


def test_probabilities_and_copies(data):
    X, y, groups = data
    models = fit_groups(warpfuse.LogisticRegression(), X, targets_of(warpfuse.LogisticRegression(), y), groups)
    again = pickle.loads(pickle.dumps(models))
    own = groups == "north"
    np.testing.assert_allclose(again.predict_proba(X, groups)[own], models.estimator_of("north").predict_proba(X[own]), rtol=1e-12)
    assert repr(again) == "<5 groups of LogisticRegression(), 3 features>" and len(again) == 5
    assert not hasattr(fit_groups(warpfuse.LinearSVC(), X, y > 1, groups), "predict_proba")


WRONG = {
    "NaN": (lambda X, y, g: (warpfuse.Ridge(), np.where(X > 2, np.nan, X), y, g), "Input X contains NaN"),
    "NaN of many": (
        lambda X, y, g: (warpfuse.Ridge(), np.repeat(np.where(X > 2, np.nan, X), 200, 0), np.repeat(y, 200), np.repeat(g, 200)),
        "Input X contains NaN",
    ),
    "NaN of y": (lambda X, y, g: (warpfuse.Ridge(), X, np.where(y > 1, np.nan, y), g), "Input y contains NaN"),
    "NaN of groups": (lambda X, y, g: (warpfuse.Ridge(), X, y, np.where(y > 1, np.nan, y)), "Input groups contains NaN"),
    "fewer groups": (lambda X, y, g: (warpfuse.Ridge(), X, y, g[1:]), "inconsistent numbers of samples"),
    "a table of groups": (lambda X, y, g: (warpfuse.Ridge(), X, y, np.stack([g, g], 1)), "1d array"),
    "several targets": (lambda X, y, g: (warpfuse.Ridge(), X, np.stack([y, y], 1), g), "1d array"),
    "three classes": (lambda X, y, g: (warpfuse.LogisticRegression(), X, np.arange(len(y)) % 3, g), "one class against the rest"),
    "one class": (lambda X, y, g: (warpfuse.LogisticRegression(), X, np.ones(len(y)), g), "at least 2 classes"),
    "counts below 0": (lambda X, y, g: (warpfuse.PoissonRegressor(), X, -y, g), "poisson targets cannot be"),
    "balanced": (lambda X, y, g: (warpfuse.LinearSVC(class_weight="balanced"), X, y > 1, g), "a weight for each class is"),
    "a parameter": (lambda X, y, g: (warpfuse.Ridge(alpha=-1.0), X, y, g), "'alpha' parameter"),
    "a solver": (lambda X, y, g: (warpfuse.LogisticRegression(solver="liblinear"), X, y > 1, g), "cannot be fitted to groups"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_input_is_refused_in_words_of_scikit_learn(what, data):
    make, words = WRONG[what]
    with pytest.raises(ValueError, match=words):
        fit_groups(*make(*data))


def test_what_is_no_estimator_and_no_array_of_the_host(data):
    X, y, groups = data
    for estimator in (peers.Ridge(), warpfuse.RidgeCV(), warpfuse.KernelRidge(), warpfuse.Ridge):
        with pytest.raises(TypeError, match="a linear model of warpfuse is needed"):
            fit_groups(estimator, X, y, groups)
    with pytest.raises(TypeError, match="takes X on the host"):
        fit_groups(warpfuse.Ridge(), warpfuse.Dataset(X), y, groups)
    models = fit_groups(warpfuse.Ridge(), X, y, groups)
    for use in (lambda: models.predict(X[:1], ["up"]), lambda: models.estimator_of("up"), lambda: models.estimator_of(3)):
        with pytest.raises(ValueError, match="previously unseen labels"):
            use()
    with pytest.raises(ValueError, match="expecting 3 features"):
        models.predict(X[:, :2], groups)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        models.predict(X, groups[1:])


def test_weights_are_repeated_rows(data, rng):
    X, y, groups = data
    counts = rng.integers(0, 4, ROWS)
    weighted = fit_groups(warpfuse.PoissonRegressor(alpha=0.1), X, y, groups, counts)
    repeated = fit_groups(warpfuse.PoissonRegressor(alpha=0.1), *(np.repeat(of, counts, 0) for of in (X, y, groups)))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7, atol=1e-9)
