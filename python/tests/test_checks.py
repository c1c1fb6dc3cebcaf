"""scikit-learn's own checks of estimators, with no expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import warpfuse

ESTIMATORS = [
    warpfuse.LinearRegression(),
    warpfuse.Ridge(),
    warpfuse.Lasso(),
    warpfuse.ElasticNet(),
    warpfuse.LogisticRegression(),
    warpfuse.LogisticRegression(l1_ratio=0.5, solver="saga"),
    warpfuse.LinearSVC(),
    warpfuse.LinearSVR(loss="squared_epsilon_insensitive"),
    warpfuse.LinearSVC(loss="hinge"),
    warpfuse.LinearSVR(epsilon=0.1),
    warpfuse.Lasso(positive=True),
    warpfuse.Ridge(positive=True),
    warpfuse.HuberRegressor(),
    warpfuse.QuantileRegressor(alpha=0.01),
    warpfuse.LassoCV(cv=3, alphas=5),
    warpfuse.ElasticNetCV(cv=3, alphas=5),
    warpfuse.RidgeCV(cv=3),
    warpfuse.LogisticRegressionCV(
        Cs=3, cv=3, scoring="accuracy", l1_ratios=(0,), use_legacy_attributes=False
    ),
    warpfuse.PoissonRegressor(),
    warpfuse.GammaRegressor(),
    warpfuse.TweedieRegressor(power=1.5),
    warpfuse.GeneralizedLinearRegressor(alpha=0.1),
    warpfuse.GeneralizedLinearRegressor(family="poisson", link="sqrt"),
    warpfuse.KernelRidge(kernel="rbf"),
    warpfuse.TruncatedSVD(n_components=1),
    warpfuse.PCA(n_components=1),
]


@parametrize_with_checks(ESTIMATORS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::warpfuse.FallbackWarning")
def test_check(estimator, check):
    with warpfuse.config_context(fallback="silent"):
        check(estimator)
