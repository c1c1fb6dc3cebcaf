"""What scikit-learn and others put around an estimator: frames, pipelines, searches in other processes, routed weights, bars."""

import importlib.util
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import warpfuse

polars = importlib.import_module("polars") if importlib.util.find_spec("polars") else None
MODELS = [
    warpfuse.Ridge(),
    warpfuse.LinearRegression(),
    warpfuse.Lasso(alpha=0.1),
    warpfuse.ElasticNet(alpha=0.1),
    warpfuse.LogisticRegression(),
    warpfuse.LinearSVC(),
    warpfuse.LinearSVR(),
    warpfuse.PoissonRegressor(),
    warpfuse.GammaRegressor(),
    warpfuse.TweedieRegressor(power=1.5),
    warpfuse.GeneralizedLinearRegressor("poisson", "sqrt"),
    warpfuse.HuberRegressor(),
    warpfuse.QuantileRegressor(alpha=0.01),
    warpfuse.KernelRidge(kernel="rbf"),
    warpfuse.RidgeCV(cv=3),
    warpfuse.LassoCV(cv=3, alphas=5),
    warpfuse.ElasticNetCV(cv=3, alphas=5),
    warpfuse.LogisticRegressionCV(Cs=3, cv=3, scoring="accuracy", l1_ratios=(0,), use_legacy_attributes=False),
    warpfuse.TruncatedSVD(2, random_state=0),
    warpfuse.PCA(2, svd_solver="arpack", random_state=0),
]


def name_of(model):
    return type(model).__name__


def given(model, rng):
    X = rng.normal(size=(60, 4))
    y = np.exp(X @ np.arange(4.0) / 4)
    return X, y > 1 if hasattr(model, "decision_function") else y


def found(model, X):
    return model.transform(X) if hasattr(model, "transform") else model.predict(X)


def test_every_class_is_here():
    classes = {name for name in warpfuse.__all__ if hasattr(getattr(warpfuse, name), "get_params")}
    assert {name_of(model) for model in MODELS} == classes


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_pickles_and_clones(model, rng):
    X, y = given(model, rng)
    expected = found(model.fit(X, y), X)
    # Sums of arrays that lie elsewhere may be rounded in another order.
    np.testing.assert_allclose(found(pickle.loads(pickle.dumps(model)), X), expected, rtol=1e-12)
    again = clone(model)
    assert not hasattr(again, "n_features_in_") and again.get_params().keys() == model.get_params().keys()
    np.testing.assert_allclose(found(again.fit(X, y), X), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", [model for model in MODELS if hasattr(model, "predict")], ids=name_of)
def test_scores_with_weights_are_told_without_a_warning(model, rng, recwarn):
    X, y = given(model, rng)
    assert model.fit(X, y).score(X, y) == pytest.approx(model.score(X, y, sample_weight=np.ones(60)))
    assert [str(one.message) for one in recwarn if issubclass(one.category, FutureWarning)] == []


def frames(X, y):
    columns = {f"column {j}": X[:, j] for j in range(X.shape[1])}
    yield "pandas", pandas.DataFrame(columns), pandas.Series(y)
    if polars is not None:
        yield "polars", polars.DataFrame(columns), polars.Series(y)


@pytest.mark.filterwarnings("error:X does not have valid feature names")
@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_frames_are_arrays_with_names(model, rng):
    X, y = given(model, rng)
    expected = found(clone(model).fit(X, y), X)
    for library, frame, target in frames(X, y):
        fitted = clone(model).fit(frame, target)
        assert list(fitted.feature_names_in_) == [f"column {j}" for j in range(4)], library
        np.testing.assert_allclose(found(fitted, frame), expected, rtol=1e-9, atol=1e-9)
        frame.columns = ["other", *frame.columns[1:]]
        with pytest.raises(ValueError, match="feature names should match"):
            found(fitted, frame)


def test_searches_in_other_processes_after_a_fit_here(rng):
    X, y = given(warpfuse.LogisticRegression(), rng)
    model = make_pipeline(StandardScaler(), warpfuse.LogisticRegression())
    grid = {"logisticregression__C": [0.1, 10.0]}
    here, there = (GridSearchCV(model, grid, cv=3, n_jobs=n).fit(X, y) for n in (None, 2))
    np.testing.assert_array_equal(here.cv_results_["mean_test_score"], there.cv_results_["mean_test_score"])


def test_text_to_classes_stays_sparse():
    texts = ["spam and eggs", "ham and spam", "rows of numbers", "numbers in columns"] * 5
    model = make_pipeline(TfidfVectorizer(), warpfuse.LogisticRegression(C=10.0))
    assert sparse.issparse(model[0].fit_transform(texts))
    assert cross_val_score(model, texts, ["food", "food", "data", "data"] * 5, cv=4).min() == 1.0


def test_weights_are_routed(rng):
    X, y = given(warpfuse.Ridge(), rng)
    weights = rng.random(60)
    with sklearn.config_context(enable_metadata_routing=True):
        model = warpfuse.Ridge().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scores = cross_validate(model, X, y, cv=3, params={"sample_weight": weights}, return_estimator=True)
        first = scores["estimator"][0]
        expected = warpfuse.Ridge().fit(X[20:], y[20:], sample_weight=weights[20:])
        np.testing.assert_array_equal(first.coef_, expected.coef_)
        assert scores["test_score"][0] == expected.score(X[:20], y[:20], sample_weight=weights[:20])


def test_a_bar_where_tqdm_is(rng, monkeypatch):
    told = []

    class Bar:
        n = 0

        def update(self, by):
            self.n += by

        def set_postfix(self, **figures):
            told.append((self.n, figures["gradient"]))

    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=lambda **_how: Bar()))
    X, y = given(warpfuse.LogisticRegression(), rng)
    with warpfuse.config_context(progress=True):
        warpfuse.LogisticRegression().fit(X, y)
    assert [step[0] for step in told] == list(range(1, len(told) + 1)) and len(told) > 1
