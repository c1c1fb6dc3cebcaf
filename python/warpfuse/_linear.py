"""The way of every linear model through ``fit``: who fits, the checks, the library, the warnings."""

import sys
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from . import _native
from ._accelerated import Accelerated
from ._again import ANY, fitted_again, prepare
from ._fit import Problem, warn_unless_converged
from ._lent import lies_on_gpu
from ._plain import are_plain_classes
from ._report import count_of
from ._sklearn import checked_weights, class_weighted, validated
from ._there import attributes_on_host, fitted_there

__all__ = ["ClassifierFit", "LinearFit", "OneTargetFit"]


class LinearFit(Accelerated):
    """A mixin left of a linear model of scikit-learn; a class says in :meth:`_fit_served` what it is to the library."""

    #: What scikit-learn's checks of X and y are told besides types.
    _checks: ClassVar[dict[str, Any]] = {}
    #: Parameters that are numbers of the library's of the same name, and between which they mean nothing else.
    _numbers: ClassVar[dict[str, tuple[float, float]]] = {"tol": ANY, "max_iter": ANY}
    _most_again: ClassVar[int] = sys.maxsize

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to X of shape (n_samples, n_features) and y.

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset`
            An array of CuPy or PyTorch on a GPU is read where it lies, and ``coef_`` and ``intercept_`` are arrays there.
        y : array-like of shape (n_samples,)
            Classes of a classifier, else numbers; of shape (n_samples, n_targets) where the class has several targets.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        if not self._fitted_again(X, y, sample_weight):
            self._fit_checked(X, y, sample_weight)
            if self._is_repeatable():
                prepare(self, X, self._prepared)
        return self

    def _fitted_again(self, X: Any, y: Any, sample_weight: Any) -> bool:
        """The short way, where it is open."""
        return fitted_again(self, X, y, sample_weight)

    @validated
    def _fit_checked(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """The long way."""
        if lies_on_gpu(X) and not self._left_to_sklearn(X, y, sample_weight):
            return fitted_there(self, lambda *given: LinearFit.fit(self, *given), X, y, sample_weight)
        if self._falls_back(X, y, sample_weight):
            return super().fit(X, y, sample_weight)
        attributes_on_host(self)
        given = X, y
        X, y = self._validated(X, y, **self._checks)
        try:
            self._fit_served(X, y, checked_weights(sample_weight, X, values=False))
        except ValueError:
            self._complain(*given, **self._checks)
            checked_weights(sample_weight, X)
            raise
        return self

    def _fit_served(self, X: Any, y: Any, weights: Any) -> None:
        """Sets the attributes of a fit; what is given has been checked."""
        raise NotImplementedError

    def _is_repeatable(self) -> bool:
        """Whether the library fits with these parameters, whose types are plain, and there is nothing else to do or to say:
        the next fit of plain arrays may go the short way to :meth:`_keep`."""
        return not getattr(self, "warm_start", False)

    def _prepared(self, values: dict[str, Any], between: dict[str, Any], largest: tuple[int, int, bool]) -> Any:
        name, params = self._objective()
        return _native.Prepared(values, between, largest, name, {**self._controls(), **params}, count_of(type(self).__name__))

    def _keep(self, X: Any, y: Any, found: Any, weights: Any = None) -> None:
        """Sets the attributes of the solution of one target with these weights, but for ``classes_``."""
        raise NotImplementedError

    def _keep_of_group(self, found: Any) -> None:
        """Sets the attributes of the solution of one group, whose rows are not at hand."""
        self._keep(None, None, found)

    def _mean(self, t: Any) -> Any:
        """What is predicted where linear predictors are these, of estimators of numbers."""
        return t

    def _objective(self) -> tuple[str, dict[str, Any]]:
        """The library's estimator, and what of its parameters is this class's."""
        raise NotImplementedError

    def _controls(self) -> dict[str, Any]:
        """What all estimators of the library have."""
        return {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "fit_intercept": self.fit_intercept,
        }


class OneTargetFit(LinearFit):
    """Of one list of coefficients: generalised linear models, support vector regression."""

    _checks: ClassVar[dict[str, Any]] = {"y_numeric": True}

    def _solve_one(
        self, X: Any, y: Any, weights: Any, start: tuple[Any, Any] | None = None, offset: Any = None
    ) -> None:
        name, params = self._objective()
        self._keep(X, y, Problem(X).solve(name, {**self._controls(), **params}, y, weights, start, offset), weights)

    def _keep(self, X: Any, y: Any, found: Any, weights: Any = None) -> None:
        self.coef_, self.n_iter_ = found.coef[0], found.n_iter
        self.intercept_ = found.intercept[0] if self.fit_intercept else 0.0
        if not found.converged:
            warn_unless_converged(self, found)

    def _own_start(self) -> tuple[Any, Any] | None:
        """Where a fit with ``warm_start`` begins."""
        return (self.coef_, self.intercept_) if self.warm_start and hasattr(self, "coef_") else None


class ClassifierFit(LinearFit):
    """Of classes."""

    def _fitted_again(self, X: Any, y: Any, sample_weight: Any) -> bool:
        if type(y) is not np.ndarray or y.dtype.kind != "U":
            return fitted_again(self, X, y, sample_weight)
        found = _encoded(y)
        return found is not None and fitted_again(self, X, found[1], sample_weight, found[0])

    def _encoded(self, X: Any, y: Any, weights: Any) -> tuple[Any, Any]:
        """A code for each sample's class, and weights with those of the classes; sets ``classes_``."""
        found = _encoded(y) if type(y) is np.ndarray else None
        is_checked = found is None and np.asarray(y).dtype.kind not in "iubU"
        if is_checked:
            check_classification_targets(y)
        classes_and_codes: Any = np.unique(y, return_inverse=True) if found is None else found
        self.classes_, codes = classes_and_codes
        if not is_checked and not are_plain_classes(y, self.classes_):
            check_classification_targets(y)
        if len(self.classes_) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data contains only one class:"
                f" {self.classes_[0]!r}"
            )
        if self.class_weight is None:
            return codes, weights
        return codes, class_weighted(self.class_weight, self.classes_, y, codes.astype(np.intp), weights)

    def _solve_classes(self, X: Any, codes: Any, weights: Any, start: Any = None) -> None:
        name, params = self._objective()
        self._keep(X, codes, Problem(X).solve(name, {**self._controls(), **params}, codes, weights, start))

    def _is_repeatable(self) -> bool:
        return self.class_weight is None and super()._is_repeatable()


def _encoded(y: Any) -> tuple[Any, Any] | None:
    """The classes of whole numbers, truths or text and the number of each label's class, by the library; None of others."""
    if y.dtype.kind != "U":
        return _native.encode(y)
    if y.ndim != 1 or not (y.size and y.itemsize and y.dtype.isnative and y.flags.c_contiguous):
        return None
    found = _native.encode_text(y.view(np.uint32).reshape(len(y), -1))
    return None if found is None else (found[0].view(y.dtype).ravel(), found[1])
