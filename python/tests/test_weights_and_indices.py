"""A weight is a number of repetitions, and a width of index types changes nothing: for every class."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import warpfuse

REGRESSORS = [
    warpfuse.LinearRegression(),
    warpfuse.Ridge(),
    warpfuse.Ridge(positive=True),
    warpfuse.Lasso(alpha=0.05),
    warpfuse.ElasticNet(alpha=0.05),
    warpfuse.LinearSVR(epsilon=0.1),
    warpfuse.LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1),
    warpfuse.HuberRegressor(),
    warpfuse.QuantileRegressor(alpha=0.01),
    warpfuse.PoissonRegressor(),
    warpfuse.GammaRegressor(),
    warpfuse.TweedieRegressor(power=1.5),
    warpfuse.GeneralizedLinearRegressor(family="inverse_gaussian", link="log", alpha=0.01),
    warpfuse.GeneralizedLinearRegressor(family="poisson", link="sqrt", alpha=0.01),
]
CLASSIFIERS = [
    warpfuse.LogisticRegression(),
    warpfuse.LogisticRegression(l1_ratio=1.0, solver="saga"),
    warpfuse.LogisticRegression(class_weight="balanced"),
    warpfuse.LinearSVC(),
    warpfuse.LinearSVC(loss="hinge"),
]
#: What takes no weights, or splits the rows. Sparse points of `KernelRidge` are left to scikit-learn.
OTHERS = [
    warpfuse.TruncatedSVD(2, random_state=0),
    warpfuse.PCA(2, svd_solver="arpack", random_state=0),
    warpfuse.LassoCV(cv=3, alphas=5),
    warpfuse.ElasticNetCV(cv=3, alphas=5),
    warpfuse.RidgeCV(cv=3),
]
SEARCH = {"Cs": 3, "cv": 3, "scoring": "accuracy", "use_legacy_attributes": False}
SEARCHES = [
    warpfuse.LogisticRegressionCV(l1_ratios=(0,), **SEARCH),
    warpfuse.LogisticRegressionCV(l1_ratios=(0.5,), solver="saga", **SEARCH),
]


def problem(rng, classes):
    X = rng.normal(size=(120, 6)) * (rng.random((120, 6)) < 0.7)
    margin = X @ np.arange(1.0, 7.0) / 3 + rng.normal(size=120)
    y = np.exp(margin / 4) if classes is None else np.digitize(margin, np.linspace(-1, 1, classes - 1))
    return X, y


def result(model, X):
    for name in ("decision_function", "predict", "transform"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(X))
    raise AssertionError(model)


CASES = [(model, None) for model in REGRESSORS] + [(model, k) for model in CLASSIFIERS for k in (2, 3)]


@pytest.mark.parametrize("model, classes", CASES, ids=str)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_weight_is_a_number_of_repetitions(model, classes, form, rng):
    X, y = problem(rng, classes)
    weights = rng.integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    with warpfuse.config_context(device="cpu", fallback="error"):
        weighted = clone(model).fit(form(X), y, sample_weight=weights)
        repeated = clone(model).fit(form(X[rows]), y[rows])
    expected = result(repeated, X)
    np.testing.assert_allclose(result(weighted, X), expected, rtol=0, atol=1e-7 * np.abs(expected).max())


WITHOUT_WEIGHTS = [(model, None) for model in OTHERS] + [(model, 2) for model in SEARCHES]


@pytest.mark.parametrize("model, classes", [*CASES, *WITHOUT_WEIGHTS], ids=str)
@pytest.mark.parametrize("device", ["cpu", "emulator:0:4"])
def test_64_bit_indices_are_those_of_32_bits(model, classes, device, rng):
    X, y = problem(rng, classes)
    X = sparse.csr_array(X)
    wide = X.copy()
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    with warpfuse.config_context(device=device, fallback="error"):
        expected, found = (clone(model).fit(x, y) for x in (X, wide))
    assert wide.indices.dtype == np.int64
    np.testing.assert_array_equal(result(found, X), result(expected, X))


class Folds:
    """Three folds, whose maker looks at the X that is split."""

    def split(self, X, y=None, groups=None):
        self.index_types = X.indices.dtype, X.indptr.dtype
        rows = np.arange(X.shape[0])
        return [(rows[rows % 3 != fold], rows[rows % 3 == fold]) for fold in range(3)]

    def get_n_splits(self, X=None, y=None, groups=None):
        return 3


SEARCHES_OF_ALL = [warpfuse.LassoCV(alphas=5), warpfuse.ElasticNetCV(alphas=5), warpfuse.RidgeCV(), *SEARCHES]


@pytest.mark.parametrize("model", SEARCHES_OF_ALL, ids=str)
def test_searches_take_64_bit_indices_as_they_are(model, rng):
    # X of more than 2^31 entries has no others, and scikit-learn's own searches with an l1 penalty refuse them.
    X, y = problem(rng, 2 if hasattr(model, "Cs") else None)
    X = sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    folds = Folds()
    clone(model).set_params(cv=folds).fit(X, y)
    assert folds.index_types == (np.int64, np.int64)
