"""Estimators whose X lies on a GPU: fits that leave their results there, and predictions that never leave it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ._dataset import Dataset
from ._lent import lend, lies_on_gpu, matrix_of, namespace_of, to_host

__all__ = [
    "attributes_on_host",
    "fitted_there",
    "labels_there",
    "product_there",
    "score_on_host",
    "sigmoid",
    "softmax",
    "with_attributes_on_host",
]

#: What a fit sets that lies where X lies.
_ATTRIBUTES = ("coef_", "intercept_", "classes_", "outliers_")


def fitted_there(estimator: Any, fit: Callable[..., Any], X: Any, y: Any, sample_weight: Any) -> Any:
    """Fits to X where it lies, and leaves the coefficients there. Targets and weights cross once, a number a row."""
    attributes_on_host(estimator)
    namespace = namespace_of(X)
    fit(Dataset(X), to_host(y), to_host(sample_weight))
    numbers = lies_on_gpu(y)
    for name in _ATTRIBUTES:
        value = vars(estimator).get(name)
        # Names of classes are for NumPy alone.
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and (name != "classes_" or numbers):
            setattr(estimator, name, namespace.asarray(value))
    return estimator


def attributes_on_host(estimator: Any) -> None:
    """Brings a fit's results to the host, from where the next one starts, or another X is predicted."""
    own = vars(estimator)
    for name in _ATTRIBUTES:
        if name in own and lies_on_gpu(own[name]):
            setattr(estimator, name, to_host(own[name]))


def with_attributes_on_host(estimator: Any, predict: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What scikit-learn predicts for X on the host, wherever the fit's results lie."""
    there = {name: value for name in _ATTRIBUTES if lies_on_gpu(value := vars(estimator).get(name))}
    if not there:
        return predict(*arguments, **named)
    try:
        attributes_on_host(estimator)
        return predict(*arguments, **named)
    finally:
        vars(estimator).update(there)


def product_there(estimator: Any, X: Any) -> Any:
    """``X @ coef_.T + intercept_`` on X's device, of shape (n_samples, k)."""
    matrix, namespace = matrix_of(X)
    coef = estimator.coef_
    features = coef.shape[-1]
    if matrix.shape[1] != features:
        raise ValueError(
            f"X has {matrix.shape[1]} features, but {type(estimator).__name__} is expecting {features} features as input"
        )
    if namespace.xp is None:
        raise TypeError(f"predictions for arrays of {namespace.root} need a library with array functions: use CuPy")
    sides = namespace.asarray(np.atleast_2d(coef)) if not lies_on_gpu(coef) else coef.reshape(-1, features)
    shift = estimator.intercept_
    if not lies_on_gpu(shift):
        shift = namespace.asarray(np.array(shift, dtype=np.float64, ndmin=1))
    shift = namespace.xp.broadcast_to(-shift.reshape(-1), (sides.shape[0],))
    sides, shift = (namespace.floats(array, matrix.dtype) for array in (sides.T, shift))
    return namespace.asarray(matrix.decision_there(lend(sides, namespace.where), lend(shift, namespace.where)))


def labels_there(classes: Any, codes: Any, X: Any) -> Any:
    """The classes of these codes: on X's device if they are numbers, else of NumPy."""
    if lies_on_gpu(classes):
        return classes[codes]
    if classes.dtype.kind in "fiub":
        return namespace_of(X).asarray(classes)[codes]
    return classes[to_host(codes)]


def score_on_host(estimator: Any, score: Callable[..., float], X: Any, y: Any, sample_weight: Any) -> float:
    """scikit-learn's figure; of X on a GPU only predictions cross."""
    if lies_on_gpu(X):
        X = Dataset(X)
    # By its name: scikit-learn 1.9 warns of weights without one.
    return with_attributes_on_host(estimator, score, X, to_host(y), sample_weight=to_host(sample_weight))


def sigmoid(scores: Any, xp: Any) -> Any:
    """``1 / (1 + exp(-scores))`` without overflow."""
    small = xp.exp(-abs(scores))
    return xp.where(scores >= 0, 1.0 / (1.0 + small), small / (1.0 + small))


def softmax(scores: Any, xp: Any) -> Any:
    """Probabilities of rows of scores."""
    powers = xp.exp(scores - xp.amax(scores, 1)[:, None])
    return powers / powers.sum(1)[:, None]
