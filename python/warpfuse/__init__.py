"""Linear models on large sparse and dense data, on NVIDIA GPUs and CPUs, with scikit-learn's interface.

The classes are scikit-learn's own with another ``fit``: the same names, parameters and attributes, so that they go into
a ``Pipeline``, ``GridSearchCV`` or ``CalibratedClassifierCV`` as they are. X is read once per product, on the GPU where
there is one, else on all cores of the processor.

Examples
--------
>>> import numpy as np
>>> from warpfuse import Ridge
>>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 2.0, 4.0])
>>> model = Ridge(alpha=2.0).fit(X, y)
>>> model.coef_.round(6)
array([1.])

=====================  ======================================================================
module                 what is there
=====================  ======================================================================
``linear_model``       Ridge, LinearRegression, Lasso, ElasticNet, LogisticRegression, GLMs, Huber and
                       quantile regression; RidgeCV, LassoCV, ElasticNetCV, LogisticRegressionCV
``svm``                LinearSVC, LinearSVR
``kernel_ridge``       KernelRidge
``decomposition``      TruncatedSVD, PCA
``graph``              hits, pagerank
``model_selection``    path_scores: cross-validation along a path of penalties
``operations``         Matrix (the fused product for your own solvers), kernel_sum, reduce, plan
=====================  ======================================================================
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._config import config_context, get_config, memory, set_config
from ._native import __version__

if _TYPE_CHECKING:
    from ._accelerate import accelerate
    from ._checkpoint import checkpoint
    from ._dataset import Dataset
    from ._group import group
    from ._grouped import FittedGroups, fit_groups
    from ._report import FallbackWarning, fits
    from .decomposition import PCA, TruncatedSVD
    from .graph import hits, pagerank
    from .kernel_ridge import KernelRidge
    from .linear_model import (
        ElasticNet,
        ElasticNetCV,
        GammaRegressor,
        GeneralizedLinearRegressor,
        HuberRegressor,
        Lasso,
        LassoCV,
        LinearRegression,
        LogisticRegression,
        LogisticRegressionCV,
        PoissonRegressor,
        QuantileRegressor,
        Ridge,
        RidgeCV,
        TweedieRegressor,
    )
    from .model_selection import path_scores
    from .operations import Matrix, kernel_sum, plan, reduce
    from .svm import LinearSVC, LinearSVR

# Where the others are: importing warpfuse imports neither scikit-learn nor SciPy.
_HOMES = {
    "accelerate": "_accelerate",
    "checkpoint": "_checkpoint",
    "Dataset": "_dataset",
    "group": "_group",
    "FittedGroups": "_grouped",
    "fit_groups": "_grouped",
    "FallbackWarning": "_report",
    "fits": "_report",
    "PCA": "decomposition",
    "TruncatedSVD": "decomposition",
    "hits": "graph",
    "pagerank": "graph",
    "KernelRidge": "kernel_ridge",
    "ElasticNet": "linear_model",
    "ElasticNetCV": "linear_model",
    "GammaRegressor": "linear_model",
    "GeneralizedLinearRegressor": "linear_model",
    "HuberRegressor": "linear_model",
    "Lasso": "linear_model",
    "LassoCV": "linear_model",
    "LinearRegression": "linear_model",
    "LogisticRegression": "linear_model",
    "LogisticRegressionCV": "linear_model",
    "PoissonRegressor": "linear_model",
    "QuantileRegressor": "linear_model",
    "Ridge": "linear_model",
    "RidgeCV": "linear_model",
    "TweedieRegressor": "linear_model",
    "Matrix": "operations",
    "kernel_sum": "operations",
    "plan": "operations",
    "reduce": "operations",
    "path_scores": "model_selection",
    "LinearSVC": "svm",
    "LinearSVR": "svm",
}

__all__ = [
    "Dataset",
    "ElasticNet",
    "ElasticNetCV",
    "FallbackWarning",
    "FittedGroups",
    "GammaRegressor",
    "GeneralizedLinearRegressor",
    "HuberRegressor",
    "KernelRidge",
    "Lasso",
    "LassoCV",
    "LinearRegression",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "LogisticRegressionCV",
    "Matrix",
    "PCA",
    "PoissonRegressor",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "TruncatedSVD",
    "TweedieRegressor",
    "__version__",
    "accelerate",
    "checkpoint",
    "config_context",
    "fit_groups",
    "fits",
    "get_config",
    "group",
    "hits",
    "kernel_sum",
    "memory",
    "pagerank",
    "path_scores",
    "plan",
    "reduce",
    "set_config",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(_import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
