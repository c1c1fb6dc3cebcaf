"""Linear and generalised linear models.

Each class is scikit-learn's of the same name with another ``fit``. Parameters that choose an algorithm (``solver``,
``selection``, ``precompute``, ``copy_X``, ``n_jobs``, ``random_state``) are accepted and change nothing: the minimum is
the same. Where a parameter changes the objective to one that warpfuse does not offer, scikit-learn fits, and a
``FallbackWarning`` says why. ``positive=True`` and quantiles are fitted on the CPU, whatever the device.
"""

from ._cv import ElasticNetCV, LassoCV, LogisticRegressionCV, RidgeCV
from ._elastic_net import ElasticNet, Lasso
from ._generalized import GeneralizedLinearRegressor
from ._glm import GammaRegressor, PoissonRegressor, TweedieRegressor
from ._least_squares import LinearRegression, Ridge
from ._logistic import LogisticRegression
from ._robust import HuberRegressor, QuantileRegressor

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "GammaRegressor",
    "GeneralizedLinearRegressor",
    "HuberRegressor",
    "Lasso",
    "LassoCV",
    "LinearRegression",
    "LogisticRegression",
    "LogisticRegressionCV",
    "PoissonRegressor",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "TweedieRegressor",
]
