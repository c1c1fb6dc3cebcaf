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
