"""What is borrowed of scikit-learn's internals, in one place: its names may move between versions."""

from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import _fit_context as fit_context
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

__all__ = ["checked_weights", "class_weighted", "fit_context"]

_COUNTS_WEIGHTS = "sample_weight" in signature(compute_class_weight).parameters


def checked_weights(sample_weight: Any, X: Any) -> Any:
    """Sample weights after scikit-learn's checks: one per row, finite, and none where there are none."""
    if sample_weight is None:
        return None
    stand_in = np.empty((X.shape[0], 1))
    weights = _check_sample_weight(sample_weight, stand_in, dtype=np.float64)
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`")
    return weights


def class_weighted(class_weight: Any, classes: Any, y: Any, codes: Any, sample_weight: Any) -> Any:
    """Sample weights times those of the classes."""
    if class_weight is None:
        return sample_weight
    given = {"sample_weight": sample_weight} if _COUNTS_WEIGHTS and sample_weight is not None else {}
    by_class = compute_class_weight(class_weight, classes=classes, y=y, **given)[codes]
    return by_class if sample_weight is None else sample_weight * by_class
