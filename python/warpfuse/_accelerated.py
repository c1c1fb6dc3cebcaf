"""What the estimators have in common: when scikit-learn fits instead, predictions on a device, datasets as X."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _report
from ._config import device_for
from ._dataset import Dataset, entries, native
from ._lent import lies_on_gpu, to_host
from ._plain import MANY, are_plain, is_finite, is_large, is_plain_matrix, remember, remembered
from ._sklearn import are_valid
from ._there import labels_there, product_there, score_on_host, with_attributes_on_host
from . import _native

if TYPE_CHECKING:
    # A mixin finds what it calls in the class of scikit-learn to its right, which has no types.
    from sklearn.base import BaseEstimator as LeftOf
else:
    LeftOf = object

#: Entries of X from which on predictions are computed by the library, on all cores or a GPU; below, NumPy's product
#: is over before a second thread has started.
_PREDICT_FROM_ENTRIES = 200_000


#: What every estimator takes.
_HOW = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


class Accelerated(LeftOf):
    """A mixin left of a class of scikit-learn, which fits by warpfuse what it can and has scikit-learn fit the rest."""

    n_features_in_: int
    #: Elements of the largest array of which a fit with parameters that are known goes the short way.
    _most_again: ClassVar[int] = MANY

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        """Why scikit-learn has to fit, or None."""
        return None

    def _falls_back(self, X: Any, y: Any = None, sample_weight: Any = None) -> bool:
        """Decides who fits, and counts it."""
        ours = type(X) is np.ndarray and type(y) is np.ndarray and sample_weight is None
        foreign = None if ours else _foreign(self, X, y, sample_weight)
        reason = foreign or _watched(self) or self._refusal(X, y, sample_weight)
        if reason is None:
            _report.served(type(self).__name__)
            return False
        self._count_fallback(X, reason)
        return True

    def _left_to_sklearn(self, X: Any, y: Any, sample_weight: Any) -> bool:
        """Whether scikit-learn is to fit an X on a GPU, which it takes while its array API is switched on."""
        reason = _watched(self) or self._refusal(X, y, sample_weight)
        if reason is None:
            return False
        if _dispatches():
            return True
        raise ValueError(f"{type(self).__name__} cannot fit an array on a GPU: {reason}; give it X on the host")

    def _count_fallback(self, X: Any, reason: str) -> None:
        """Counts a fit by scikit-learn, which cannot be on a Dataset."""
        name = type(self).__name__
        if isinstance(X, Dataset):
            raise ValueError(f"{name} cannot fit a Dataset: {reason}")
        _report.fell_back(name, reason)

    def _validate_params(self) -> None:
        """scikit-learn's checks of the parameters, once for the same values."""
        key = remembered(self)
        if key == ():
            return
        if not are_valid(self):
            super()._validate_params()
        remember(key)

    def _complain(self, X: Any, y: Any, **how: Any) -> None:
        """Raises what scikit-learn says of X and y, if anything: of large arrays the library alone has looked at the values."""
        if not isinstance(X, Dataset):
            validate_data(self, X, y, **{**_HOW, **how})

    def _validated(self, X: Any, y: Any, **how: Any) -> tuple[Any, Any]:
        """X and y after scikit-learn's checks; a Dataset has been checked when it was made.

        Values of large arrays are left to the library, which looks at them where they lie or on their way.
        """
        how = {**_HOW, **how}
        if not isinstance(X, Dataset):
            if not are_plain(X, y, how):
                return validate_data(self, X, y, **how)
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            return X, y
        stand_in = np.zeros((X.shape[0], 1))
        kept = {key: how[key] for key in ("multi_output", "y_numeric") if key in how}
        _, y = validate_data(self, stand_in, y, **kept)
        self.n_features_in_ = X.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(X, "feature_names_in_"):
            self.feature_names_in_ = X.feature_names_in_
        return X, y


class LinearPrediction(LeftOf):
    """A mixin for linear predictors: on a device where X is there or large."""

    #: Arrays of the library that X was of.
    coef_: Any
    intercept_: Any
    n_features_in_: int

    def _product(self, X: Any) -> Any:
        """``X @ coef_.T + intercept_`` by the library, or None where NumPy is as fast."""
        check_is_fitted(self)
        if lies_on_gpu(X):
            return product_there(self, X)
        dataset = isinstance(X, Dataset)
        if not dataset and (_foreign(self, X) or _size(X) < _PREDICT_FROM_ENTRIES):
            return None
        coef = np.array(to_host(self.coef_), dtype=np.float64, ndmin=2)
        if dataset:
            if X.shape[1] != coef.shape[1]:
                raise ValueError(f"X has {X.shape[1]} features, but {type(self).__name__} expects {coef.shape[1]}")
            given = X._native
        else:
            X, is_known = self._checked(X)
            if X.dtype != to_host(self.coef_).dtype and X.dtype == np.float32:
                return None
            given = _native.Matrix(native(X), device_for(entries(X)), 0)
        intercept = np.broadcast_to(np.asarray(to_host(self.intercept_), np.float64), coef.shape[0])
        found = given.decision(np.ascontiguousarray(coef), np.ascontiguousarray(intercept))
        if not dataset and not is_known and not is_finite(found):
            # An X that is not finite has no finite products; a finite one may have them all the same.
            validate_data(self, X, **_HOW, reset=False)
        return found

    def _checked(self, X: Any) -> tuple[Any, bool]:
        """X after scikit-learn's checks, and whether they looked at its values."""
        if X.shape[1] == self.n_features_in_ and not hasattr(self, "feature_names_in_") and is_plain_matrix(X):
            return X, not is_large(X)
        return validate_data(self, X, **_HOW, reset=False), True


class RegressorPrediction(LinearPrediction):
    """Of numbers."""

    def _decision_function(self, X: Any) -> Any:
        found = self._product(X)
        if found is None:
            return with_attributes_on_host(self, super()._decision_function, X)
        return found.ravel() if self.coef_.ndim == 1 else found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions, or D² of a generalised linear model.

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset` of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        return score_on_host(self, super().score, X, y, sample_weight)


class ClassifierPrediction(LinearPrediction):
    """Of classes."""

    classes_: Any

    def decision_function(self, X: Any) -> Any:
        """Signed distances to the hyperplanes, times the norms of their coefficients.

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset` of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Where X lies.
        """
        found = self._product(X)
        if found is None:
            return with_attributes_on_host(self, super().decision_function, X)
        return found.ravel() if found.shape[1] == 1 else found

    def predict(self, X: Any) -> Any:
        """The class of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset` of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Where X lies, but for names of classes, which are NumPy's.
        """
        there = lies_on_gpu(X)
        if not there and not isinstance(X, Dataset):
            return with_attributes_on_host(self, super().predict, X)
        scores = self.decision_function(X)
        codes = (scores > 0) * 1 if scores.ndim == 1 else scores.argmax(1)
        return labels_there(self.classes_, codes, X) if there else to_host(self.classes_)[codes]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose class is predicted.

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset` of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        return score_on_host(self, super().score, X, y, sample_weight)


def shape_of(X: Any) -> tuple[int, ...]:
    """The shape of anything like an array: before scikit-learn's checks, X may be a list or worse."""
    if isinstance(X, Sequence):
        return np.shape(X)
    return tuple(getattr(X, "shape", ())) or np.asarray(X).shape


def _size(X: Any) -> int:
    """Entries of an array or a sparse matrix; 0 of anything else, which is small."""
    if sparse.issparse(X):
        return int(X.nnz)
    shape = getattr(X, "shape", ())
    return int(np.prod(shape)) if len(shape) == 2 else 0


def _dispatches() -> bool:
    """Whether scikit-learn's array API is switched on."""
    from sklearn import get_config

    return bool(get_config().get("array_api_dispatch", False))


def _foreign(estimator: Any, *arrays: Any) -> str | None:
    """Why arrays of another library are left to scikit-learn."""
    for array in arrays:
        if type(array) is np.ndarray:
            continue
        there = lies_on_gpu(array)
        if array is None or isinstance(array, Dataset) or sparse.issparse(array):
            continue
        if isinstance(array, np.ndarray) and not there:
            continue
        if hasattr(array, "__array_namespace__") or type(array).__module__.partition(".")[0] in ("torch", "cupy"):
            if _dispatches():
                return "arrays of the array API stay where they are"
            if there:
                name = type(estimator).__name__
                raise TypeError(f"{name} takes arrays of the host, and this one lies on a GPU: copy it to the host first")
    return None


def _watched(estimator: Any) -> str | None:
    """scikit-learn 1.9's callbacks want the coefficients of each iteration."""
    if getattr(estimator, "_skl_callbacks", None):
        return "callbacks are not supported; use warpfuse.set_config(progress=...)"
    return None
