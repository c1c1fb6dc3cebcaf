"""Estimates agree with those of R and Stata that statsmodels keeps, for families with links, to their digits."""

import warnings

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import warpfuse

pytest.importorskip("statsmodels")
theirs = pytest.importorskip("statsmodels.genmod.tests.test_glm")

# statsmodels' test class, which has data and the stored results; family and link here.
CASES = [
    ("TestGlmGaussian", "gaussian", "identity", {}),
    ("TestGaussianLog", "gaussian", "log", {}),
    ("TestGaussianInverse", "gaussian", "inverse", {}),
    ("TestGlmBinomial", "binomial", "logit", {}),
    ("TestGlmBernoulli", "binomial", "logit", {}),
    ("TestGlmGamma", "gamma", "inverse", {}),
    ("TestGlmGammaLog", "gamma", "log", {}),
    ("TestGlmGammaIdentity", "gamma", "identity", {}),
    ("TestGlmPoisson", "poisson", "log", {}),
    ("TestGlmInvgauss", "inverse_gaussian", "power", {"link_power": -2.0}),
    ("TestGlmInvgaussLog", "inverse_gaussian", "log", {}),
    ("TestGlmInvgaussIdentity", "inverse_gaussian", "identity", {}),
]


@pytest.fixture(scope="module")
def their_case():
    made = {}

    def make(name):
        if name not in made:
            case = getattr(theirs, name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                case.setup_class()
            made[name] = case
        return made[name]

    return make


def constant_column(X):
    return next(j for j in range(X.shape[1]) if np.ptp(X[:, j]) == 0)


@pytest.mark.parametrize(("name", "family", "link", "more"), CASES, ids=[case[0] for case in CASES])
def test_parameters(name, family, link, more, their_case):
    case = their_case(name)
    model, params = case.res1.model, np.asarray(case.res2.params, dtype=float)
    X, y = np.asarray(model.exog, dtype=float), np.asarray(model.endog, dtype=float)
    weights = np.broadcast_to(np.asarray(getattr(model, "n_trials", 1.0), dtype=float), y.shape)
    j = constant_column(X)
    columns = np.delete(X, j, axis=1)
    # The data have columns of very different sizes, which a user would scale, too.
    scaler = StandardScaler().fit(columns)
    ours = warpfuse.GeneralizedLinearRegressor(
        family=family, link=link, alpha=0.0, tol=1e-8, max_iter=1000, **more
    ).fit(scaler.transform(columns), y, sample_weight=weights)
    coef = ours.coef_ / scaler.scale_
    intercept = ours.intercept_ - coef @ scaler.mean_
    found = np.insert(coef, j, intercept)
    digits = getattr(case, "decimal_params", 4)
    np.testing.assert_allclose(found, params, rtol=1e-4, atol=10.0**-digits)
    # To all digits against statsmodels itself, in the means: parameters of dependent columns are less certain.
    means = ours.predict(scaler.transform(columns))
    np.testing.assert_allclose(means, np.asarray(case.res1.fittedvalues), rtol=1e-5)
