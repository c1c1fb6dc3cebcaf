"""What is wrong is told by scikit-learn's exceptions and in its words; indices of 64 bits are not wrong."""

import numpy as np
import pytest
import sklearn.decomposition
import sklearn.kernel_ridge
import sklearn.linear_model
import sklearn.svm
from scipy import sparse

import warpfuse

CLASSIFIERS = ("LogisticRegression", "LinearSVC", "LogisticRegressionCV")
NAMES = (
    *CLASSIFIERS, "Ridge", "LinearRegression", "Lasso", "ElasticNet", "LinearSVR", "PoissonRegressor", "GammaRegressor",
    "TweedieRegressor", "KernelRidge", "TruncatedSVD", "PCA", "RidgeCV", "LassoCV", "ElasticNetCV", "HuberRegressor",
    "QuantileRegressor",
)
WITHOUT_WEIGHTS = ("TruncatedSVD", "PCA")

#: Those with which warpfuse fits, and not scikit-learn.
PARAMETERS = {
    **{name: {"cv": 3} for name in NAMES if name.endswith("CV")},
    "KernelRidge": {"kernel": "rbf"},
    "PCA": {"n_components": 2},
}

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))


def spoiled(array, value):
    array = array.copy()
    array[(3, 1)[: array.ndim]] = value
    return array


#: X, y and weights of 60 good rows and what is wrong with them.
WRONG = {
    "NaN in X": lambda y: (spoiled(X, np.nan), y),
    "infinity in X": lambda y: (spoiled(X, np.inf), y),
    "NaN in CSR": lambda y: (sparse.csr_matrix(spoiled(X, np.nan)), y),
    "one dimension": lambda y: (X[:, 0], y),
    "three dimensions": lambda y: (X[None], y),
    "no rows": lambda y: (X[:0], y[:0]),
    "no columns": lambda y: (X[:, :0], y),
    "no X": lambda y: (None, y),
    "complex X": lambda y: (X + 1j, y),
    "other rows of y": lambda y: (X, y[:-1]),
    "no y": lambda y: (X, None),
    "NaN in y": lambda y: (X, spoiled(y.astype(float), np.nan)),
    "infinity in y": lambda y: (X, spoiled(y.astype(float), np.inf)),
    "one value in y": lambda y: (X, np.ones(60)),
    "negative y": lambda y: (X, -y),
    "NaN in weights": lambda y: (X, y, np.full(60, np.nan)),
    "other rows of weights": lambda y: (X, y, np.ones(59)),
    "weights of zero": lambda y: (X, y, np.zeros(60)),
}


def theirs(name):
    modules = (sklearn.linear_model, sklearn.svm, sklearn.decomposition, sklearn.kernel_ridge)
    return next(getattr(module, name) for module in modules if hasattr(module, name))


def end(of, name, given):
    """The exception of a fit and how its words begin."""
    # A search of scikit-learn's RidgeCV says that all of its fits failed: warpfuse's, why.
    model = of(**(PARAMETERS.get(name, {}) if name != "RidgeCV" else {}))
    weights = {"sample_weight": given[2]} if len(given) == 3 else {}
    try:
        model.fit(*given[:2], **weights)
    except Exception as error:
        return type(error).__name__, str(error)[:25]
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_as_scikit_learn_does(name, what):
    y = (X[:, 0] > 0).astype(int) if name in CLASSIFIERS else np.abs(X[:, 1]) + 0.1
    given = WRONG[what](y)
    if len(given) == 3 and name in WITHOUT_WEIGHTS:
        pytest.skip("takes no weights")
    with warpfuse.config_context(fallback="silent"):
        assert end(getattr(warpfuse, name), name, given) == end(theirs(name), name, given)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in (*CLASSIFIERS, "TruncatedSVD", "PCA")])
def test_targets_that_are_text_are_no_numbers(name):
    with pytest.raises(ValueError):
        getattr(warpfuse, name)(**PARAMETERS.get(name, {})).fit(X, np.array(["a"] * 60))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "KernelRidge"])
def test_indices_of_64_bits_are_taken(name):
    y = (X[:, 0] > 0).astype(int) if name in CLASSIFIERS else np.abs(X[:, 1]) + 0.1
    narrow = sparse.csr_matrix(X * (RNG.random(X.shape) < 0.7))
    wide = narrow.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    seeded = {**PARAMETERS.get(name, {}), **({"random_state": 0} if name in WITHOUT_WEIGHTS else {})}
    found = [getattr(warpfuse, name)(**seeded).fit(given, y) for given in (narrow, wide)]
    attribute = "components_" if name in WITHOUT_WEIGHTS else "coef_"
    np.testing.assert_array_equal(*(getattr(model, attribute) for model in found))


#: What spoils offsets and indices of a CSR matrix that nobody has looked at: SciPy itself follows them out of its memory.
BROKEN = {
    "an offset beyond the entries": lambda A: A.indptr.__setitem__(3, 1000),
    "a negative offset": lambda A: A.indptr.__setitem__(3, -7),
    "offsets that descend": lambda A: A.indptr.__setitem__(slice(2, 4), [20, 3]),
    "a last offset beyond the entries": lambda A: A.indptr.__setitem__(-1, 10_000),
    "a first offset that is not 0": lambda A: A.indptr.__setitem__(0, 2),
    "an index beyond the columns": lambda A: A.indices.__setitem__(5, 77),
    "a negative index": lambda A: A.indices.__setitem__(5, -5),
}


@pytest.mark.parametrize("rows", [60, 60_000])
@pytest.mark.parametrize("name", ["Ridge", "LogisticRegression", "TruncatedSVD", "Matrix", "Dataset"])
@pytest.mark.parametrize("what", BROKEN)
def test_broken_offsets_and_indices_are_refused(what, name, rows):
    A = sparse.csr_matrix(np.tile(X, (rows // 60, 1)))
    BROKEN[what](A)
    y = (np.arange(rows) % 2).astype(float)
    with pytest.raises(ValueError):
        if name in ("Matrix", "Dataset"):
            getattr(warpfuse, name)(A)
        else:
            getattr(warpfuse, name)().fit(A, y)


def test_settings_are_checked_when_they_are_made():
    for wrong in ("tpu", "cuda:-1", "cpu:0", 3):
        with pytest.raises(ValueError, match="device must be"):
            warpfuse.set_config(device=wrong)
    with pytest.raises(ValueError, match="progress must be"), warpfuse.config_context(progress=3):
        pass
    with pytest.raises(ValueError, match="at least one row"):
        warpfuse.plan((-1, 3), gpu="h200")


def test_files_and_offsets(tmp_path):
    file = tmp_path / "a.svm"
    file.write_text("1 1:2\n0 1:1\n")
    with pytest.raises(ValueError, match="dtype must be float32 or float64, got int8"):
        warpfuse.Dataset.from_file(file, dtype="int8")
    with pytest.raises(ValueError, match="n_features must be at least 0, got -3"):
        warpfuse.Dataset.from_file(file, n_features=-3)
    model = warpfuse.GeneralizedLinearRegressor("poisson")
    for name in ("offset", "exposure"):
        with pytest.raises(ValueError, match=f"{name} must be of shape"):
            model.fit(X, abs(X[:, 0]), **{name: np.ones((60, 2))})
