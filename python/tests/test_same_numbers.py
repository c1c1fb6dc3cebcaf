"""Coefficients agree with scikit-learn's, where both have converged: dense and sparse, weighted, of all classes."""

import numpy as np
import pytest
import sklearn.decomposition
import sklearn.kernel_ridge
import sklearn.linear_model
import sklearn.svm
from scipy import sparse
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

import warpfuse

PLACES = [sklearn.linear_model, sklearn.svm, sklearn.decomposition, sklearn.kernel_ridge]
# Both stop where the gradient is small; coefficients then agree to about its root over the curvature.
CASES = [
    ("LinearRegression", {}, {}),
    ("Ridge", {"alpha": 0.7}, {}),
    ("Ridge", {"alpha": 0.7, "fit_intercept": False}, {}),
    ("Lasso", {"alpha": 0.05, "tol": 1e-12}, {"max_iter": 100_000}),
    ("ElasticNet", {"alpha": 0.05, "tol": 1e-12}, {"max_iter": 100_000}),
    ("LinearRegression", {"positive": True}, {}),
    ("Ridge", {"alpha": 0.7, "positive": True, "tol": 1e-9}, {"max_iter": 100_000}),
    ("Lasso", {"alpha": 0.05, "tol": 1e-12, "positive": True}, {"max_iter": 100_000}),
    ("ElasticNet", {"alpha": 0.05, "tol": 1e-12, "positive": True}, {"max_iter": 100_000}),
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


@pytest.mark.parametrize("weighted", [False, True])
def test_a_gram_matrix_of_ones_own_is_checked_and_not_needed(weighted, rng):
    X = rng.normal(size=(60, 5))
    y = X @ np.arange(5.0) + rng.normal(size=60)
    weights = rng.random(60) + 0.1 if weighted else None
    scale = np.ones(60) if weights is None else weights / weights.mean()
    X -= np.average(X, axis=0, weights=scale)
    gram = X.T @ (scale[:, None] * X)
    ours = warpfuse.ElasticNet(alpha=0.1, tol=1e-12, precompute=gram).fit(X, y, sample_weight=weights)
    other = warpfuse.ElasticNet(alpha=0.1, tol=1e-12).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(ours.coef_, other.coef_)
    with pytest.raises(ValueError, match="did not pass validation"):
        warpfuse.ElasticNet(precompute=gram + 1.0).fit(X, y, sample_weight=weights)
    with pytest.warns(UserWarning, match="recomputing Gram matrix"):
        warpfuse.ElasticNet(precompute=gram).fit(X + 1.0, y, sample_weight=weights)


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


@pytest.mark.parametrize("weighted", [False, True])
def test_huber(weighted, rng):
    X = rng.normal(size=(120, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * rng.normal(size=120)
    y[::17] += 20
    weights = rng.integers(1, 4, size=120).astype(float) if weighted else None
    ours = warpfuse.HuberRegressor(tol=1e-9).fit(X, y, sample_weight=weights)
    other = sklearn.linear_model.HuberRegressor(tol=1e-9, max_iter=10_000).fit(X, y, sample_weight=weights)
    # scikit-learn's L-BFGS stops at a change of the objective by its precision, whose root the coefficients are off.
    np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.scale_, other.scale_, rtol=1e-4)
    np.testing.assert_array_equal(ours.outliers_, other.outliers_)

    def objective(model):
        r = np.abs(y - model.predict(X)) / model.scale_
        losses = np.where(r <= 1.35, r**2, 2 * 1.35 * r - 1.35**2) * model.scale_ + model.scale_
        return (losses * (1.0 if weights is None else weights)).sum() + 1e-4 * (model.coef_**2).sum()

    assert objective(ours) <= objective(other) * (1 + 1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
def test_quantiles(alpha, quantile, rng):
    X = rng.normal(size=(83, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + rng.gamma(1.0, 1.0, size=83)

    def objective(model):
        r = y - model.predict(X)
        return np.maximum(quantile * r, (quantile - 1) * r).mean() + alpha * np.abs(model.coef_).sum()

    ours = warpfuse.QuantileRegressor(quantile=quantile, alpha=alpha).fit(X, y)
    other = sklearn.linear_model.QuantileRegressor(quantile=quantile, alpha=alpha).fit(X, y)
    np.testing.assert_allclose(objective(ours), objective(other), rtol=1e-7)


def svm_objective(model, X, y, weights):
    """With the intercept penalised, as in liblinear."""
    t = (X @ model.coef_.ravel()) + model.intercept_
    losses = np.abs(y - t) - model.epsilon if hasattr(model, "epsilon") else 1 - np.where(y, t, -t)
    losses = np.maximum(losses, 0) * (1.0 if weights is None else weights)
    return model.C * losses.sum() + 0.5 * (model.coef_**2).sum() + 0.5 * float(np.sum(model.intercept_)) ** 2


@pytest.mark.parametrize("weighted", [False, True])
def test_svms_with_kinks(weighted, rng):
    X = rng.normal(size=(90, 4))
    t = X @ [1.0, -1.0, 0.5, 0.0] + 0.5 * rng.normal(size=90)
    weights = rng.integers(1, 4, size=90).astype(float) if weighted else None
    exact = {"tol": 1e-10, "max_iter": 10_000_000, "random_state": 0}
    for name, params, y in [
        ("LinearSVC", {"loss": "hinge", "C": 0.3}, t > 0.2),
        ("LinearSVR", {"epsilon": 0.2, "C": 0.3}, t),
    ]:
        ours = getattr(warpfuse, name)(**params, tol=1e-6).fit(X, y, sample_weight=weights)
        other = getattr(sklearn.svm, name)(**params, **exact).fit(X, y, sample_weight=weights)
        # liblinear's coordinate descent ends at a tolerance of the dual, whose root the coefficients are off.
        np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-4, atol=1e-4)
        found, best = svm_objective(ours, X, y, weights), svm_objective(other, X, y, weights)
        assert found <= best * (1 + 1e-8)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_penalties_by_cross_validation(form, weighted, rng):
    X = rng.normal(size=(80, 5)) * (rng.random((80, 5)) < 0.7)
    t = X @ [2.0, -1.0, 0.5, 0.0, 0.0] + 0.3 * rng.normal(size=80)
    weights = rng.integers(1, 4, size=80).astype(float) if weighted else None
    tight = {"tol": 1e-10, "max_iter": 100_000, "alphas": 12, "cv": 4}
    for name, params in [("LassoCV", tight), ("ElasticNetCV", {**tight, "l1_ratio": [0.3, 0.9]})]:
        ours = getattr(warpfuse, name)(**params).fit(form(X), t, sample_weight=weights)
        other = getattr(sklearn.linear_model, name)(**params).fit(form(X), t, sample_weight=weights)
        np.testing.assert_allclose(ours.alpha_, other.alpha_)
        np.testing.assert_allclose(ours.alphas_, other.alphas_)
        np.testing.assert_allclose(ours.mse_path_, other.mse_path_, rtol=1e-6)
        np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-6, atol=1e-7)
    # scikit-learn's solver for sparse X is iterative, and RidgeCV has no tolerance.
    near = 1e-6 if form is np.asarray else 1e-3
    alphas = np.logspace(-3, 3, 7)
    for y in (t, np.column_stack([t, -2 * t + X[:, 0]])):
        ours = warpfuse.RidgeCV(alphas, cv=4).fit(form(X), y, sample_weight=weights)
        other = sklearn.linear_model.RidgeCV(alphas, cv=4).fit(form(X), y, sample_weight=weights)
        np.testing.assert_allclose(ours.alpha_, other.alpha_)
        np.testing.assert_allclose(ours.best_score_, other.best_score_, rtol=near)
        np.testing.assert_allclose(ours.coef_, other.coef_, rtol=near, atol=near)


def classes_of(rng, classes):
    X = rng.normal(size=(150, 4))
    t = X @ [2.0, -1.0, 0.5, 0.0] + 0.8 * rng.normal(size=150)
    return X, np.digitize(t, [0.0] if classes == 2 else [-0.6, 0.6])


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_penalties_by_cross_validation(classes, rng):
    X, y = classes_of(rng, classes)
    given = {"Cs": 4, "cv": 3, "scoring": "neg_log_loss", "l1_ratios": (0,), "use_legacy_attributes": True}
    ours = warpfuse.LogisticRegressionCV(**given, tol=1e-8).fit(X, y)
    exact = {"solver": "newton-cg", "tol": 1e-10, "max_iter": 1000}
    other = sklearn.linear_model.LogisticRegressionCV(**given, **exact).fit(X, y)
    np.testing.assert_allclose(ours.C_, other.C_)
    assert ours.coefs_paths_.keys() == other.coefs_paths_.keys()
    for name, path in other.coefs_paths_.items():
        np.testing.assert_allclose(ours.coefs_paths_[name], path, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(ours.scores_[name], other.scores_[name], rtol=1e-6)
    np.testing.assert_allclose(ours.coef_, other.coef_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_l1_logistic_penalties_by_cross_validation(classes, rng):
    """Against fits of each fold and penalty: scikit-learn's saga stops before the intercept has settled."""
    X, y = classes_of(rng, classes)
    given = {"Cs": [0.1, 1.0], "cv": 3, "scoring": "neg_log_loss", "l1_ratios": (0, 0.5), "solver": "saga"}
    ours = warpfuse.LogisticRegressionCV(**given, use_legacy_attributes=False, tol=1e-8).fit(X, y)
    folds = list(StratifiedKFold(3).split(X, y))
    for at, (train, test) in enumerate(folds):
        for r, l1_ratio in enumerate((0.0, 0.5)):
            for c, C in enumerate((0.1, 1.0)):
                model = warpfuse.LogisticRegression(C=C, l1_ratio=l1_ratio, solver="saga", tol=1e-8)
                score = -log_loss(y[test], model.fit(X[train], y[train]).predict_proba(X[test]))
                np.testing.assert_allclose(ours.scores_[at, r, c], score, rtol=1e-6)
    best = np.unravel_index(ours.scores_.mean(axis=0).argmax(), (2, 2))
    assert (ours.l1_ratio_, ours.C_) == ((0, 0.5)[best[0]], (0.1, 1.0)[best[1]])


def test_exposures_are_offsets(rng):
    X = rng.normal(size=(200, 3))
    exposure = rng.uniform(0.5, 3.0, size=200)
    y = rng.poisson(exposure * np.exp(0.4 * X[:, 0] + 0.2))
    model = warpfuse.GeneralizedLinearRegressor(family="poisson", alpha=0.0, tol=1e-8)
    coef = model.fit(X, y, exposure=exposure).coef_
    # Rates with the exposures for weights are the same likelihood.
    rates = sklearn.linear_model.PoissonRegressor(alpha=0.0, tol=1e-10, solver="newton-cholesky")
    rates.fit(X, y / exposure, sample_weight=exposure)
    np.testing.assert_allclose(coef, rates.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.fit(X, y, offset=np.log(exposure)).coef_, coef)
    np.testing.assert_allclose(model.predict(X, exposure=exposure), exposure * model.predict(X))
    with pytest.raises(ValueError, match="link='log'"):
        warpfuse.GeneralizedLinearRegressor().fit(X, y, exposure=exposure)
