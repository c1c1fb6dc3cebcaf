"""What is borrowed of scikit-learn's internals, in one place: its names may move between versions."""

from collections.abc import Callable
from functools import update_wrapper, wraps
from inspect import signature
from numbers import Integral, Real
from types import FunctionType
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import _fit_context as fit_context
from sklearn.linear_model._base import _pre_fit
from sklearn.utils._param_validation import Options, make_constraint
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from ._plain import is_large, names_of, remembered

__all__ = ["are_valid", "between", "check_gram", "checked_weights", "class_weighted", "fit_context", "rebound", "validated"]

#: The constraints of a class's parameters, which scikit-learn makes anew for each fit: that takes longer than to check them.
_constraints: dict[type, list[tuple[str, tuple[Any, ...]]]] = {}

_COUNTS_WEIGHTS = "sample_weight" in signature(compute_class_weight).parameters


def validated(fit: Callable[..., Any]) -> Callable[..., Any]:
    """scikit-learn's ``fit_context`` for a fit within which scikit-learn fits nothing, but by a fit with a context of its own:
    parameters are checked, unless its settings say otherwise, and nothing is set up for what would go on inside."""

    @wraps(fit)
    def checked(estimator: Any, *given: Any, **named: Any) -> Any:
        if remembered(estimator) != () and not get_config()["skip_parameter_validation"]:
            estimator._validate_params()
        return fit(estimator, *given, **named)

    return checked


def are_valid(estimator: Any) -> bool:
    """Whether all parameters satisfy scikit-learn's constraints; what it says of others is left to it."""
    of = type(estimator)
    known = _constraints.get(of)
    if known is None:
        known = _constraints[of] = _constraints_of(of)
    values = ((getattr(estimator, name), constraints) for name, constraints in known)
    return all(any(one.is_satisfied_by(value) for one in constraints) for value, constraints in values)


def _constraints_of(of: Any) -> list[tuple[str, tuple[Any, ...]]]:
    named = ((name, of._parameter_constraints.get(name, "no_validation")) for name in names_of(of))
    return [(name, tuple(map(make_constraint, those))) for name, those in named if those != "no_validation"]


def between(of: type) -> dict[str, tuple[float, float, bool]]:
    """The numbers between which scikit-learn takes any of a class's parameters, and whether they have to be whole."""
    found = {}
    for name, constraints in _constraints_of(of):
        for one in constraints:
            # Intervals, and all numbers of a type, which have no ends.
            if isinstance(one, Options) or getattr(one, "type", None) not in (Integral, Real):
                continue
            low, high = getattr(one, "left", None), getattr(one, "right", None)
            found[name] = (-np.inf if low is None else float(low), np.inf if high is None else float(high), one.type is Integral)
    return found


def checked_weights(sample_weight: Any, X: Any, *, values: bool = True) -> Any:
    """Sample weights after scikit-learn's checks: one per row, finite, and none where there are none. Of many the values are left
    to the library, which looks at them by all cores, unless they are to be looked at."""
    if sample_weight is None:
        return None
    if not values and type(sample_weight) is np.ndarray and is_large(sample_weight):
        if sample_weight.dtype == np.float64 and sample_weight.shape == (X.shape[0],):
            return sample_weight
    stand_in = np.empty((X.shape[0], 1))
    weights = _check_sample_weight(sample_weight, stand_in, dtype=np.float64)
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`")
    return weights


def check_gram(gram: Any, X: Any, y: Any, weights: Any, fit_intercept: bool) -> None:
    """scikit-learn's word on a Gram matrix of one's own, which no solver of ours needs: an error where it is not of X, a
    warning where the intercept asks for another."""
    mean_of_one = None if weights is None else weights * (len(weights) / weights.sum())
    _pre_fit(X, y, None, gram, fit_intercept, copy=True, sample_weight=mean_of_one)


def class_weighted(class_weight: Any, classes: Any, y: Any, codes: Any, sample_weight: Any) -> Any:
    """Sample weights times those of the classes."""
    if class_weight is None:
        return sample_weight
    given = {"sample_weight": sample_weight} if _COUNTS_WEIGHTS and sample_weight is not None else {}
    by_class = compute_class_weight(class_weight, classes=classes, y=y, **given)[codes]
    return by_class if sample_weight is None else sample_weight * by_class


def rebound(function: Callable[..., Any], **names: Any) -> Callable[..., Any]:
    """A copy of a function of scikit-learn's to which these names of its module mean something else.

    What is around an algorithm (grids, folds, scores, attributes) stays scikit-learn's own code. A name that its module
    no longer has is an error when warpfuse is imported, not a silent change.
    """
    inner: Any = getattr(function, "__wrapped__", function)
    missing = [name for name in names if name not in inner.__globals__]
    if missing:
        raise ImportError(f"{inner.__module__} of this version of scikit-learn has no {', '.join(missing)}")
    found: Any = FunctionType(
        inner.__code__, {**inner.__globals__, **names}, inner.__name__, inner.__defaults__, inner.__closure__
    )
    found.__kwdefaults__ = inner.__kwdefaults__
    update_wrapper(found, inner)
    del found.__wrapped__
    return fit_context(prefer_skip_nested_validation=True)(found) if inner is not function else found
