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
    ("TestTweedieLog1", "tweedie", "log", {"power": 1.0}),
    ("TestTweedieLog15Fair", "tweedie", "log", {"power": 1.5}),
    # Positive means by an identity link, and no intercept from which they could start.
    ("TestTweediePower15", "tweedie", "identity", {"power": 1.5}),
    ("TestTweediePower2", "tweedie", "identity", {"power": 2.0}),
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
    return next((j for j in range(X.shape[1]) if np.ptp(X[:, j]) == 0), None)


class Scaled:
    """A fit to columns of one size, as a user would scale those of the data too, and its parameters in the data's order."""

    def __init__(self, X, y, weights=None, exposure=None, **params):
        self.constant = constant_column(X)
        has_one = self.constant is not None
        columns = np.delete(X, self.constant, axis=1) if has_one else X
        self.scaler = StandardScaler(with_mean=has_one)
        model = warpfuse.GeneralizedLinearRegressor(alpha=0.0, tol=1e-8, max_iter=1000, fit_intercept=has_one, **params)
        self.columns = self.scaler.fit_transform(columns)
        self.model = model.fit(self.columns, y, sample_weight=weights, exposure=exposure)

    def params(self):
        coef = self.model.coef_ / self.scaler.scale_
        if self.constant is None:
            return coef
        return np.insert(coef, self.constant, self.model.intercept_ - coef @ self.scaler.mean_)


@pytest.mark.parametrize(("name", "family", "link", "more"), CASES, ids=[case[0] for case in CASES])
def test_parameters(name, family, link, more, their_case):
    case = their_case(name)
    model, params = case.res1.model, np.asarray(case.res2.params, dtype=float)
    X, y = np.asarray(model.exog, dtype=float), np.asarray(model.endog, dtype=float)
    weights = np.broadcast_to(np.asarray(getattr(model, "n_trials", 1.0), dtype=float), y.shape)
    ours = Scaled(X, y, weights, family=family, link=link, **more)
    digits = getattr(case, "decimal_params", 4)
    np.testing.assert_allclose(ours.params(), params, rtol=1e-4, atol=10.0**-digits)
    # To all digits against statsmodels itself, in the means: parameters of dependent columns are less certain.
    means = ours.model.predict(ours.columns)
    np.testing.assert_allclose(means, np.asarray(case.res1.fittedvalues), rtol=1e-5)


def test_exposures(their_case):
    case = their_case("TestGlmPoissonOffset")
    model = case.res1.model
    ours = Scaled(np.asarray(model.exog), np.asarray(model.endog), exposure=np.asarray(case.exposure, float), family="poisson")
    np.testing.assert_allclose(ours.params(), np.asarray(case.res2.params, float), rtol=1e-4, atol=1e-4)


def test_what_has_no_start_is_refused_with_advice():
    model = warpfuse.GeneralizedLinearRegressor(family="poisson", link="identity", fit_intercept=False)
    with pytest.raises(ValueError, match="fit an intercept, or use the family's default link"):
        model.fit([[1.0], [-1.0]], [1.0, 2.0])
