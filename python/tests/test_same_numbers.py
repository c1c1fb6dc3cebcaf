"""Coefficients agree with scikit-learn's, where both have converged: dense and sparse, weighted, of all classes."""

import numpy as np
import pytest
import sklearn.decomposition
import sklearn.kernel_ridge
import sklearn.linear_model
import sklearn.svm
from scipy import sparse

import warpfuse

PLACES = [sklearn.linear_model, sklearn.svm, sklearn.decomposition, sklearn.kernel_ridge]
# Both stop where the gradient is small; coefficients then agree to about its root over the curvature.
CASES = [
    ("LinearRegression", {}, {}),
    ("Ridge", {"alpha": 0.7}, {}),
    ("Ridge", {"alpha": 0.7, "fit_intercept": False}, {}),
    ("Lasso", {"alpha": 0.05, "tol": 1e-12}, {"max_iter": 100_000}),
    ("ElasticNet", {"alpha": 0.05, "tol": 1e-12}, {"max_iter": 100_000}),
    ("LogisticRegression", {"C": 0.5, "tol": 1e-9}, {"max_iter": 10_000, "solver": "newton-cholesky"}),
    ("LinearSVC", {"C": 0.5, "tol": 1e-9}, {"max_iter": 1_000_000, "dual": False}),
    (
        "LinearSVR",
        {"C": 0.5, "epsilon": 0.1, "tol": 1e-9, "loss": "squared_epsilon_insensitive"},
        {"max_iter": 1_000_000, "dual": False},
    ),
    ("PoissonRegressor", {"alpha": 0.1, "tol": 1e-9}, {"max_iter": 10_000, "solver": "newton-cholesky"}),
    ("GammaRegressor", {"alpha": 0.1, "tol": 1e-9}, {"max_iter": 10_000, "solver": "newton-cholesky"}),
    ("TweedieRegressor", {"power": 1.5, "alpha": 0.1, "tol": 1e-9}, {"max_iter": 10_000, "solver": "newton-cholesky"}),
]


def peer(name):
    return next(getattr(place, name) for place in PLACES if hasattr(place, name))


def targets(name, X, rng):
    t = X @ np.linspace(-1, 1, X.shape[1]) + 0.3 * rng.normal(size=len(X))
    if name in ("LogisticRegression", "LinearSVC"):
        return np.array(["low", "middle", "high"])[np.digitize(t, [-0.5, 0.5])]
    return np.exp(0.5 * t) if name in ("PoissonRegressor", "GammaRegressor", "TweedieRegressor") else t


@pytest.mark.parametrize(("name", "params", "theirs"), CASES)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients(name, params, theirs, form, weighted, rng):
    X = rng.normal(size=(120, 6)) * (rng.random((120, 6)) < 0.6)
    y = targets(name, X, rng)
    weights = rng.integers(1, 4, size=120).astype(float) if weighted else None
    ours = getattr(warpfuse, name)(**{"max_iter": 1000, **params} if name != "LinearRegression" else params)
    ours.fit(form(X), y, sample_weight=weights)
    other = peer(name)(**params, **theirs).fit(X, y, sample_weight=weights)
    assert np.shape(ours.coef_) == np.shape(other.coef_)
    assert np.shape(ours.intercept_) == np.shape(other.intercept_)
    np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, other.intercept_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "Lasso", "ElasticNet"])
def test_several_targets(name, rng):
    X = rng.normal(size=(80, 5))
    Y = X @ rng.normal(size=(5, 3)) + rng.normal(size=(80, 3))
    params = {"alpha": 0.1} if name != "LinearRegression" else {}
    if name in ("Lasso", "ElasticNet"):
        params["tol"] = 1e-12
    ours, other = getattr(warpfuse, name)(**params).fit(X, Y), peer(name)(**params).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ours.intercept_, other.intercept_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ours.predict(X), other.predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_kernel_ridge(kernel, rng):
    X, Y = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    ours = warpfuse.KernelRidge(kernel=kernel, gamma=0.3, alpha=0.5).fit(X, Y)
    other = sklearn.kernel_ridge.KernelRidge(kernel=kernel, gamma=0.3, alpha=0.5).fit(X, Y)
    np.testing.assert_allclose(ours.dual_coef_, other.dual_coef_, rtol=1e-8, atol=1e-8)
    wide = rng.normal(size=(20_000, 3))
    np.testing.assert_allclose(ours.predict(wide), other.predict(wide), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_components(form, rng):
    X = form(rng.normal(size=(200, 8)) * np.arange(1, 9) + np.arange(8))
    ours, other = warpfuse.PCA(3).fit(X), sklearn.decomposition.PCA(3, svd_solver="arpack").fit(X)
    for name in ("components_", "explained_variance_", "explained_variance_ratio_", "mean_", "noise_variance_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(other, name), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.transform(X), other.transform(X), rtol=1e-7, atol=1e-7)
    ours = warpfuse.TruncatedSVD(3).fit(X)
    other = sklearn.decomposition.TruncatedSVD(3, algorithm="arpack").fit(X)
    for name in ("components_", "singular_values_", "explained_variance_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(other, name), rtol=1e-8, atol=1e-9)


def test_l1_logistic_regression(rng):
    X = rng.normal(size=(150, 8))
    y = (X[:, 0] + 0.5 * rng.normal(size=150) > 0).astype(int)
    ours = warpfuse.LogisticRegression(l1_ratio=1.0, solver="saga", C=0.2, max_iter=1000).fit(X, y)
    other = sklearn.linear_model.LogisticRegression(
        l1_ratio=1.0, solver="saga", C=0.2, max_iter=100_000, tol=1e-12
    ).fit(X, y)
    np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-6, atol=1e-7)
    assert (ours.coef_ == 0).sum() == (other.coef_ == 0).sum() > 0
