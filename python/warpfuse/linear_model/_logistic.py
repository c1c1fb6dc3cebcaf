"""Logistic regression of two classes and more."""

from typing import Any, ClassVar

import numpy as np
from sklearn import linear_model as _peer
from sklearn.linear_model._logistic import _check_solver

from .. import _native
from .._accelerated import ClassifierPrediction
from .._again import ANY
from .._fit import warn_unless_converged
from .._lent import lies_on_gpu, namespace_of
from .._linear import ClassifierFit
from .._there import sigmoid, softmax, with_attributes_on_host
from .._warn import warn

#: scikit-learn 1.8 and later.
_DEPRECATES_PENALTY = _peer.LogisticRegression().penalty == "deprecated"


def _penalty_of(estimator: Any) -> tuple[str | None, float, float]:
    """Penalty, C and l1 ratio of a LogisticRegression, in the words of before and after scikit-learn 1.8."""
    penalty, ratio, C = estimator.penalty, estimator.l1_ratio, estimator.C
    if penalty == "deprecated":
        if ratio is None:
            warn(
                "'l1_ratio=None' was deprecated in version 1.8 and will trigger an error in 1.10. Use 0<=l1_ratio<=1"
                " instead.",
                FutureWarning,
            )
        ratio = ratio or 0.0
        penalty = {0.0: "l2", 1.0: "l1"}.get(ratio, "elasticnet") if C != np.inf else None
        return penalty, float(C), float(ratio)
    if penalty is None:
        return None, np.inf, 0.0
    return penalty, float(C), {"l2": 0.0, "l1": 1.0}.get(penalty, ratio if ratio is not None else 0.0)


class ProbabilityPrediction(ClassifierPrediction):
    """Of classes by the logistic function and its relative for several, on a device where X is there or large."""

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, in the order of ``classes_``.

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset` of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Where X lies.
        """
        if not lies_on_gpu(X):
            return self._proba_here(X)
        scores, xp = self.decision_function(X), namespace_of(X).xp
        if scores.ndim > 1:
            return softmax(scores, xp)
        return xp.stack([sigmoid(-scores, xp), sigmoid(scores, xp)], -1)

    def _proba_here(self, X: Any) -> Any:
        """On the host: where the library multiplies, pairs are made by all cores, too."""
        scores = self._product(X)
        if scores is None:
            return with_attributes_on_host(self, super().predict_proba, X)
        if scores.shape[1] > 1:
            return softmax(scores, np)
        pairs: Any = _native.sigmoids(scores.ravel())
        return pairs.reshape(-1, 2)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like, sparse matrix or :class:`warpfuse.Dataset` of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Where X lies.
        """
        found = self.predict_proba(X)
        return namespace_of(X).xp.log(found) if lies_on_gpu(X) else np.log(found)


class LogisticRegression(ClassifierFit, ProbabilityPrediction, _peer.LogisticRegression):
    """Logistic regression, binary and multinomial: :class:`sklearn.linear_model.LogisticRegression` by warpfuse.

    Parameters and attributes are scikit-learn's. Every penalty goes with every ``solver``, since the solver changes
    nothing, but for ``"liblinear"`` with an intercept, which penalises that and is left to scikit-learn.

    Examples
    --------
    >>> from warpfuse import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> model = LogisticRegression(C=10.0).fit(X, y)
    >>> model.predict([[0.5], [2.5]])
    array(['no', 'yes'], dtype='<U3')
    """

    _numbers: ClassVar[dict[str, tuple[float, float]]] = {**ClassifierFit._numbers, "C": ANY}

    def _refusal(self, X: Any, y: Any = None, sample_weight: Any = None) -> str | None:
        if self.dual:
            return "dual=True is a method of liblinear"
        if self.solver == "liblinear":
            return "solver='liblinear' penalises the intercept and splits classes"
        if self.max_iter == 0:
            return "max_iter=0 fits nothing"
        return None

    def _fit_served(self, X: Any, y: Any, weights: Any) -> None:
        codes, weights = self._encoded(X, y, weights)
        start = self._start(X) if self.warm_start else None
        self._solve_classes(X, codes, weights, start)

    def _keep(self, X: Any, y: Any, found: Any, weights: Any = None) -> None:
        is_binary = len(self.classes_) == 2
        self.coef_, self.intercept_ = (found.coef, found.intercept) if is_binary else _centred(found, self._unpenalised())
        self.n_iter_ = np.array([found.n_iter], dtype=np.int32)
        if not found.converged:
            warn_unless_converged(self, found)

    def _is_repeatable(self) -> bool:
        return self._is_usual() and super()._is_repeatable()

    def _is_usual(self) -> bool:
        """Whether nothing but C was chosen: there is nothing to complain about."""
        return self.penalty == "deprecated" and self.l1_ratio == 0 and self.solver == "lbfgs" and self.n_jobs is None

    def _objective(self) -> tuple[str, dict[str, Any]]:
        C, ratio = self._checked_penalty()
        return "logistic_regression", {"C": C, "l1_ratio": ratio}

    def _unpenalised(self) -> bool:
        return self.penalty is None or self.C == np.inf

    def _checked_penalty(self) -> tuple[float, float]:
        """C and the l1 ratio, with scikit-learn's complaints about combinations."""
        if self._is_usual():
            return float(self.C), 0.0
        penalty, C, ratio = _penalty_of(self)
        _check_solver(self.solver, penalty, self.dual)
        self._warn_of_old_words(penalty)
        if penalty == "elasticnet" and self.l1_ratio is None:
            raise ValueError("l1_ratio must be specified when penalty is elasticnet.")
        return C, ratio

    def _warn_of_old_words(self, penalty: str | None) -> None:
        if _DEPRECATES_PENALTY and self.penalty != "deprecated":
            warn(
                "'penalty' was deprecated in version 1.8 and will be removed in 1.10. To avoid this warning, leave"
                " 'penalty' set to its default value and use 'l1_ratio' or 'C' instead. Use l1_ratio=0 instead of"
                " penalty='l2', l1_ratio=1 instead of penalty='l1', l1_ratio set to a float between 0 and 1 instead"
                " of penalty='elasticnet', and C=np.inf instead of penalty=None.",
                FutureWarning,
            )
        if _DEPRECATES_PENALTY and self.n_jobs is not None:
            warn(
                "'n_jobs' has no effect since 1.8 and will be removed in 1.10. You provided"
                f" 'n_jobs={self.n_jobs}', please leave it unspecified.",
                FutureWarning,
            )
        if penalty != "elasticnet" and self.l1_ratio is not None and 0 < self.l1_ratio < 1:
            warn(
                f"l1_ratio parameter is only used when penalty is 'elasticnet'. Got (penalty={penalty})",
            )
        if (self.penalty == "l2" and self.l1_ratio not in (0, None)) or (
            self.penalty == "l1" and _DEPRECATES_PENALTY and self.l1_ratio != 1
        ):
            warn(
                f"Inconsistent values: penalty={self.penalty} with l1_ratio={self.l1_ratio}. penalty is deprecated."
                " Please use l1_ratio only.",
            )
        if self.penalty is None and self.C != 1.0:
            warn("Setting penalty=None will ignore the C and l1_ratio parameters")

    def _start(self, X: Any) -> tuple[Any, Any] | None:
        coef = getattr(self, "coef_", None)
        rows = 1 if len(self.classes_) == 2 else len(self.classes_)
        if coef is None or coef.shape != (rows, X.shape[1]):
            return None
        return coef, self.intercept_


def _centred(found: Any, is_free: bool) -> tuple[Any, Any]:
    """Of the numbers that give the same probabilities those that add up to 0 over the classes, as scikit-learn has them.

    An l2 penalty centres the coefficients by itself; an l1 penalty has one minimum, too, and must not be touched.
    """
    intercept = found.intercept - found.intercept.mean()
    return (found.coef - found.coef.mean(axis=0) if is_free else found.coef), intercept
