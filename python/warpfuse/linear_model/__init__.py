"""Linear and generalised linear models.

Each class is scikit-learn's of the same name with another ``fit``. Parameters that choose an algorithm (``solver``,
``selection``, ``precompute``, ``copy_X``, ``n_jobs``, ``random_state``) are accepted and change nothing: the minimum is
the same. Where a parameter changes the objective to one that warpfuse does not offer, such as ``positive=True``,
scikit-learn fits, and a ``FallbackWarning`` says why.
"""

from ._elastic_net import ElasticNet, Lasso
from ._generalized import GeneralizedLinearRegressor
from ._glm import GammaRegressor, PoissonRegressor, TweedieRegressor
from ._least_squares import LinearRegression, Ridge
from ._logistic import LogisticRegression

__all__ = [
    "ElasticNet",
    "GammaRegressor",
    "GeneralizedLinearRegressor",
    "Lasso",
    "LinearRegression",
    "LogisticRegression",
    "PoissonRegressor",
    "Ridge",
    "TweedieRegressor",
]
