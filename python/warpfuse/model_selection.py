"""Choosing a penalty by cross-validation that reads X once for up to eight fits."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ._dataset import Dataset
from ._fit import _watch
from ._linear import LinearFit

__all__ = ["path_scores"]


def path_scores(
    estimator: Any, X: Any, y: Any, *, param_name: str, param_range: Sequence[Any] | NDArray[Any], cv: Any = None
) -> NDArray[Any]:
    """Scores of an estimator for each value of a parameter, cross-validated.

    What :func:`sklearn.model_selection.validation_curve` tells of test sets, but X lies on the device once and each of
    its reads serves up to eight fits, whatever fold and value they belong to; rows are held out by a weight of 0.

    Parameters
    ----------
    estimator : a linear model of warpfuse
    X : array-like, sparse matrix or Dataset of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    param_name : str
        Such as "alpha" or "C".
    param_range : sequence
        Neighbours should be neighbours: a fit starts where the one before ended.
    cv : int or splitter, default=None
        As scikit-learn has it: 5 folds by default. Each row must be held out exactly once.

    Returns
    -------
    ndarray of shape (n_values, n_folds)
        Of the estimator's ``score``: R², explained deviance, accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from warpfuse import Ridge, path_scores
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> scores = path_scores(Ridge(), X, 3 * X.ravel() + 1, param_name="alpha", param_range=[0.0, 1e4], cv=4)
    >>> scores.shape, bool((scores[0] > 0.999).all())
    ((2, 4), True)
    """
    if not isinstance(estimator, LinearFit):
        raise TypeError(f"a linear model of warpfuse is needed, got {type(estimator).__name__}")
    data = X if isinstance(X, Dataset) else Dataset(X)
    if is_classifier(estimator):
        check_classification_targets(y)
        codes = np.unique(y, return_inverse=True)[1].astype(np.float64)
    else:
        codes = np.ascontiguousarray(column_or_1d(y, dtype=np.float64, warn=True))
    if len(codes) != len(data):
        raise ValueError(f"X has {len(data)} rows, but y has {len(codes)} targets")
    fold_of, folds = _folds(cv, codes, is_classifier(estimator))
    given = [_given(estimator, param_name, value, data) for value in param_range]
    names = {name for name, _ in given}
    if len(names) != 1:
        raise ValueError("param_range must have values, all of one objective: split it at l1_ratio=1")
    found = data._native.cross_validate(names.pop(), [p for _, p in given], codes, fold_of, folds, _watch(None))
    return found["scores"]


def _given(estimator: Any, name: str, value: Any, data: Dataset) -> tuple[str, dict[str, Any]]:
    """What the library is told of one point of the path."""
    model = clone(estimator).set_params(**{name: value})
    model._validate_params()
    reason = model._refusal(data)
    if reason is None and getattr(model, "class_weight", None) is not None:
        reason = "class_weight is not offered along a path"
    if reason is not None:
        raise ValueError(f"{type(model).__name__} cannot be fitted along a path: {reason}")
    native, params = model._objective()
    return native, {**model._controls(), **params}


def _folds(cv: Any, codes: Any, stratified: bool) -> tuple[list[int], int]:
    fold_of = np.full(len(codes), -1, dtype=np.int64)
    folds = 0
    for _, test in check_cv(cv, codes, classifier=stratified).split(np.zeros((len(codes), 1)), codes):
        if (fold_of[test] >= 0).any():
            raise ValueError("cv holds a row out twice; a partition into folds is needed, such as KFold makes")
        fold_of[test] = folds
        folds += 1
    if (fold_of < 0).any():
        raise ValueError("cv never holds some rows out; a partition into folds is needed, such as KFold makes")
    return fold_of.tolist(), folds
