"""scikit-learn's own classes replaced by warpfuse's, in scripts that are not changed."""

import importlib
import sys
from types import ModuleType

from ._config import set_config

#: Where scikit-learn defines each class, and where warpfuse does.
_REPLACED = {
    "LinearRegression": ("sklearn.linear_model._base", "sklearn.linear_model", "linear_model"),
    "Ridge": ("sklearn.linear_model._ridge", "sklearn.linear_model", "linear_model"),
    "Lasso": ("sklearn.linear_model._coordinate_descent", "sklearn.linear_model", "linear_model"),
    "ElasticNet": ("sklearn.linear_model._coordinate_descent", "sklearn.linear_model", "linear_model"),
    "LogisticRegression": ("sklearn.linear_model._logistic", "sklearn.linear_model", "linear_model"),
    "RidgeCV": ("sklearn.linear_model._ridge", "sklearn.linear_model", "linear_model"),
    "LassoCV": ("sklearn.linear_model._coordinate_descent", "sklearn.linear_model", "linear_model"),
    "ElasticNetCV": ("sklearn.linear_model._coordinate_descent", "sklearn.linear_model", "linear_model"),
    "LogisticRegressionCV": ("sklearn.linear_model._logistic", "sklearn.linear_model", "linear_model"),
    "HuberRegressor": ("sklearn.linear_model._huber", "sklearn.linear_model", "linear_model"),
    "QuantileRegressor": ("sklearn.linear_model._quantile", "sklearn.linear_model", "linear_model"),
    "PoissonRegressor": ("sklearn.linear_model._glm.glm", "sklearn.linear_model", "linear_model"),
    "GammaRegressor": ("sklearn.linear_model._glm.glm", "sklearn.linear_model", "linear_model"),
    "TweedieRegressor": ("sklearn.linear_model._glm.glm", "sklearn.linear_model", "linear_model"),
    "LinearSVC": ("sklearn.svm._classes", "sklearn.svm", "svm"),
    "LinearSVR": ("sklearn.svm._classes", "sklearn.svm", "svm"),
    "KernelRidge": ("sklearn.kernel_ridge", "sklearn.kernel_ridge", "kernel_ridge"),
    "TruncatedSVD": ("sklearn.decomposition._truncated_svd", "sklearn.decomposition", "decomposition"),
    "PCA": ("sklearn.decomposition._pca", "sklearn.decomposition", "decomposition"),
}


def accelerate(*, only: list[str] | None = None, fallback: str = "silent") -> list[str]:
    """Replace scikit-learn's classes by warpfuse's, which fall back where they do not offer a parameter.

    Modules that have imported a class already get the new one, too, under the name that it has in scikit-learn; so
    call it early, but not necessarily first. What scikit-learn derives from its own classes stays as it is.

    Parameters
    ----------
    only : list of str, optional
        Names of classes; all by default.
    fallback : {"silent", "warn", "error"}, default="silent"
        What happens where scikit-learn has to fit; see :func:`warpfuse.set_config`. :func:`warpfuse.fits` counts.

    Returns
    -------
    list of str
        The names that were replaced.

    Examples
    --------
    >>> import warpfuse
    >>> warpfuse.accelerate(only=["Ridge"])
    ['Ridge']
    >>> from sklearn.linear_model import Ridge
    >>> Ridge is warpfuse.Ridge
    True
    >>> from warpfuse._accelerate import restore
    >>> restore()
    """
    unknown = sorted(set(only or []) - set(_REPLACED))
    if unknown:
        raise ValueError(f"warpfuse does not replace {', '.join(unknown)}; it replaces {', '.join(_REPLACED)}")
    set_config(fallback=fallback)
    names = list(_REPLACED) if only is None else list(only)
    # All of ours first: they derive from the classes that are about to be replaced.
    ours = {name: getattr(importlib.import_module(f"warpfuse.{_REPLACED[name][2]}"), name) for name in names}
    for name in names:
        _replace(name, _theirs(name), ours[name])
    return names


def restore() -> None:
    """Undo :func:`accelerate`."""
    for name, (_, _, home) in _REPLACED.items():
        ours = getattr(importlib.import_module(f"warpfuse.{home}"), name)
        _replace(name, ours, _original(ours))
    set_config(fallback="warn")


def _theirs(name: str) -> type:
    found = getattr(importlib.import_module(_REPLACED[name][0]), name)
    return _original(found)


def _original(found: type) -> type:
    """scikit-learn's class, of which ``found`` may be ours."""
    of_sklearn = (c for c in found.__mro__ if c.__module__.startswith("sklearn.") and c.__name__ == found.__name__)
    return next(of_sklearn)


def _replace(name: str, old: type, new: type) -> None:
    """In every module that has the name, but those in which it must stay: ours."""
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType) or module.__name__.startswith("warpfuse"):
            continue
        if vars(module).get(name) is old:
            setattr(module, name, new)
