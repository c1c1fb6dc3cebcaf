"""Arrays on a GPU without a GPU: the emulator borrows memory of this process, as a GPU borrows that of CuPy."""

import gc
import types
import weakref

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import warpfuse
from warpfuse import _native
from warpfuse._config import open_device
from warpfuse._lent import lies_on_gpu

try:
    _native.Device("emulator")
except ValueError:
    pytestmark = pytest.mark.skip(reason="the extension was built without the feature `emulator`")


class OnDevice(np.ndarray):
    """An array whose library offers ``__cuda_array_interface__``, as if its memory were a GPU's."""

    exports = 0

    @property
    def __cuda_array_interface__(self):
        OnDevice.exports += 1
        return {**self.__array_interface__, "stream": None, "version": 3}

    # Without DLPack, which NumPy's arrays have of their own.
    @property
    def __dlpack__(self):
        raise AttributeError("__dlpack__")

    def __array_namespace__(self, api_version=None):
        return LIBRARY


def on_device(values):
    if isinstance(values, _native.DeviceArray):
        values = values.numpy()
    whole = np.ascontiguousarray(values)
    # Memory of GPUs is aligned to more than 16 bytes.
    room = np.zeros(whole.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    found = room[start : start + whole.nbytes].view(whole.dtype).reshape(whole.shape)
    found[...] = whole
    return found.view(OnDevice)


LIBRARY = types.SimpleNamespace(
    asarray=on_device,
    ascontiguousarray=lambda array, dtype=None: (
        array if array.flags.c_contiguous and array.dtype == dtype else on_device(np.asarray(array, dtype=dtype))
    ),
    broadcast_to=lambda array, shape: on_device(np.broadcast_to(array, shape)),
    stack=lambda arrays, axis: on_device(np.stack(arrays, axis)),
    **{name: getattr(np, name) for name in ("exp", "log", "where", "amax")},
)


class Csr:
    """A matrix of a library of sparse matrices, as CuPy has one."""

    format, has_canonical_format = "csr", True
    __module__ = "cupyx.scipy.sparse"

    def __init__(self, S):
        self.shape, self.dtype = S.shape, S.dtype
        self.data, self.indices, self.indptr = map(on_device, (S.data, S.indices, S.indptr))


class ByDlpack:
    """An array whose library offers DLPack alone."""

    def __init__(self, values):
        self.values = values
        self.shape, self.dtype = values.shape, values.dtype

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __dlpack__(self, **named):
        assert named == {}, "an emulator has no streams"
        return self.values.__dlpack__()


@pytest.fixture(autouse=True)
def emulated():
    with warpfuse.config_context(device="emulator", fallback="error"):
        yield


def counts():
    return open_device("emulator").memory()


def crossed(before):
    after = counts()
    return after["sent_bytes"] - before["sent_bytes"], after["received_bytes"] - before["received_bytes"]


def data(rng, rows=60, cols=5, dtype=np.float32):
    X = rng.normal(size=(rows, cols)).astype(dtype)
    return X, X @ np.arange(1.0, cols + 1) + 1.0 + 0.1 * rng.normal(size=rows)


def lent(device, array):
    return _native.DeviceArray(array, device)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cols", [3, 4, 40])
def test_products_read_x_where_it_lies(dtype, cols, rng):
    X, _ = data(rng, 70, cols, dtype)
    device = open_device("emulator")
    before, exports = counts(), OnDevice.exports
    placed = _native.Matrix(lent(device, on_device(X)), device)
    y, p = rng.normal(size=cols).astype(dtype), rng.normal(size=70).astype(dtype)
    found = [
        placed.product("forward", lent(device, on_device(y)), None, None, 1.0, 0.0),
        placed.product("transposed", lent(device, on_device(p)), None, None, 1.0, 0.0),
        placed.product("fused", lent(device, on_device(y)), lent(device, on_device(p)), None, 2.0, 0.0),
    ]
    assert crossed(before) == (0, 0) and OnDevice.exports > exports
    expected = [X @ y, X.T @ p, 2.0 * (X.T @ (p * (X @ y)))]
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_products_read_x_where_it_lies(dtype, index, rng):
    S = sparse.random_array((80, 30), density=0.1, dtype=dtype, rng=rng).tocsr()
    device = open_device("emulator")
    before = counts()
    parts = [lent(device, on_device(a)) for a in (S.data, S.indices.astype(index), S.indptr.astype(index))]
    placed = _native.Matrix((*parts, S.shape), device)
    y = rng.normal(size=30).astype(dtype)
    found = placed.product("forward", lent(device, on_device(y)), None, None, 1.0, 0.0)
    # Figures of the checks come back: two offsets, extremes and the sum of lengths.
    sent, received = crossed(before)
    assert sent == 0 and received < 256
    np.testing.assert_allclose(found.numpy(), S @ y, rtol=1e-4, atol=1e-5)


def test_broken_sparse_matrices_are_refused(rng):
    device = open_device("emulator")

    def place(data, indices, indptr, shape, dtype=np.int32):
        arrays = (np.array(data, np.float64), np.array(indices, dtype), np.array(indptr, dtype))
        return _native.Matrix((*(lent(device, on_device(a)) for a in arrays), shape), device)

    assert place([1, 2], [0, 1], [0, 1, 2], (2, 2)).shape == (2, 2)
    assert place([], [], [0, 0], (1, 2)).shape == (1, 2)
    for wrong in (
        ([1, 2], [0, 2], [0, 1, 2], (2, 2)),
        ([1, 2], [0, -1], [0, 1, 2], (2, 2)),
        ([1, 2], [0, 1], [0, 2, 1], (2, 2)),
        ([1, 2], [0, 1], [0, 3, 2], (2, 2)),
        ([1, 2], [0, 1], [0, -1, 2], (2, 2)),
        ([1, 2], [0, 1], [1, 1, 2], (2, 2)),
        ([1, 2], [0, 1], [0, 1, 2], (3, 2)),
        ([1, 2], [0], [0, 1, 2], (2, 2)),
    ):
        with pytest.raises(ValueError, match="no valid CSR matrix"):
            place(*wrong)
        with pytest.raises(ValueError, match="no valid CSR matrix"):
            place(*wrong, dtype=np.int64)
    with pytest.raises(ValueError, match="no valid CSR matrix"):
        place([1, 2], [0, 2**32 + 1], [0, 1, 2], (2, 2), np.int64)


def test_the_owner_is_kept_and_let_go(rng):
    device = open_device("emulator")
    X = on_device(data(rng)[0])
    owner, before = weakref.ref(X), counts()["lent_bytes"]
    placed = _native.Matrix(lent(device, X), device)
    del X
    gc.collect()
    assert owner() is not None and counts()["lent_bytes"] == before + 60 * 5 * 4
    del placed
    gc.collect()
    assert owner() is None and counts()["lent_bytes"] == before


def test_dlpack_gives_its_memory_back(rng):
    device = open_device("emulator")
    own = data(rng)[0]
    kept, expected = weakref.ref(own), np.array(own)
    borrowed = lent(device, ByDlpack(own))
    del own
    gc.collect()
    assert kept() is not None
    np.testing.assert_array_equal(borrowed.numpy(), expected)
    assert (borrowed.shape, borrowed.dtype) == ((60, 5), "float32")
    del borrowed
    gc.collect()
    assert kept() is None


def test_arrays_that_cannot_be_borrowed():
    device = open_device("emulator")
    for wrong, words in [
        (np.zeros((4, 4), order="F").view(OnDevice)[:, ::2], "C order"),
        (np.zeros((2, 2, 2)).view(OnDevice), "C order"),
        (np.zeros(8)[::2].view(OnDevice), "C order"),
        (np.zeros(4, np.uint8).view(OnDevice), "float32, float64, int32 or int64"),
    ]:
        with pytest.raises(TypeError, match=words):
            lent(device, wrong)
    with pytest.raises(ValueError, match="multiple of 16"):
        lent(device, on_device(np.zeros(9))[1:])
    with pytest.raises(ValueError, match="cpu was requested|SharedSlice"):
        lent(open_device("cpu"), on_device(np.zeros(2)))
    with pytest.raises(ValueError, match="cpu was requested"):
        lent(open_device("cpu"), ByDlpack(np.zeros(2)))

    class Streamed(OnDevice):
        @property
        def __cuda_array_interface__(self):
            return {**super().__cuda_array_interface__, "stream": 0}

    with pytest.raises(BufferError, match="stream 0"):
        lent(device, np.zeros(2).view(Streamed))


REGRESSIONS = [
    (warpfuse.Ridge, {}),
    (warpfuse.LinearRegression, {}),
    (warpfuse.ElasticNet, {"alpha": 0.01}),
    (warpfuse.LinearSVR, {"loss": "squared_epsilon_insensitive"}),
    (warpfuse.HuberRegressor, {"max_iter": 300}),
    (warpfuse.GeneralizedLinearRegressor, {"alpha": 0.1}),
]


@pytest.mark.parametrize(("kind", "params"), REGRESSIONS, ids=lambda given: getattr(given, "__name__", ""))
def test_regressions_leave_their_results_there(kind, params, rng):
    X, y = data(rng, dtype=np.float64)
    model = kind(**params).fit(on_device(X), on_device(y))
    assert isinstance(model.coef_, OnDevice)
    expected = kind(**params).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)
    found = model.predict(on_device(X))
    assert isinstance(found, OnDevice) and found.shape == y.shape
    np.testing.assert_allclose(found, expected.predict(X), rtol=1e-6)
    np.testing.assert_allclose(model.score(on_device(X), on_device(y)), expected.score(X, y), rtol=1e-6)
    # What a fit left there predicts X on the host, too.
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-6)
    assert isinstance(model.coef_, OnDevice)
    assert type(model.fit(X, y).coef_) is np.ndarray


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_x_never_crosses(form, rng):
    X, y = data(rng, 400, 60)
    there = on_device(X)
    if form == "csr":
        there = Csr(sparse.csr_array(X))
    before = counts()
    warpfuse.Ridge(max_iter=20).fit(there, on_device(y))
    sent, received = crossed(before)
    # A target and a weight a row, and vectors of one number a column.
    assert sent < 8 * (2 * 400 + 20 * 60) and received < 8 * 60 * 60
    assert sent + received < X.nbytes / 2


@pytest.mark.parametrize("kind", [warpfuse.PoissonRegressor, warpfuse.TweedieRegressor])
def test_generalised_models_there(kind, rng):
    X, y = data(rng, dtype=np.float64)
    y = np.exp(0.2 * y)
    model, expected = kind().fit(on_device(X), on_device(y)), kind().fit(X, y)
    found = model.predict(on_device(X))
    assert isinstance(found, OnDevice)
    np.testing.assert_allclose(found, expected.predict(X), rtol=1e-5)
    np.testing.assert_allclose(model.score(on_device(X), on_device(y)), expected.score(X, y), rtol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", [warpfuse.LogisticRegression, warpfuse.LinearSVC])
def test_classifiers_there(kind, classes, rng):
    X, y = data(rng, dtype=np.float64)
    codes = 7 + np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    model, expected = kind().fit(on_device(X), on_device(codes)), kind().fit(X, codes)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-5, atol=1e-6)
    found = model.predict(on_device(X))
    assert isinstance(found, OnDevice) and isinstance(model.classes_, OnDevice)
    np.testing.assert_array_equal(found, expected.predict(X))
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert model.score(on_device(X), on_device(codes)) == expected.score(X, codes)
    if kind is warpfuse.LogisticRegression:
        shares = model.predict_proba(on_device(X))
        assert isinstance(shares, OnDevice)
        np.testing.assert_allclose(shares, expected.predict_proba(X), rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(model.predict_log_proba(on_device(X)), np.log(shares), rtol=1e-6)
    names = np.array(["a", "b", "c"])[codes - 7]
    named = kind().fit(on_device(X), names)
    np.testing.assert_array_equal(named.predict(on_device(X)), kind().fit(X, names).predict(X))


def test_other_types_and_orders_become_rows_of_floats(rng):
    X, y = data(rng, dtype=np.float64)
    expected = warpfuse.Ridge().fit(X, y).coef_
    for other in (np.asfortranarray(X).view(OnDevice), on_device(np.repeat(X, 2, axis=1))[:, ::2]):
        np.testing.assert_allclose(warpfuse.Ridge().fit(other, y).coef_, expected, rtol=1e-6)
    whole = rng.integers(0, 9, X.shape)
    found = warpfuse.Ridge().fit(on_device(whole), y).coef_
    np.testing.assert_allclose(found, warpfuse.Ridge().fit(whole, y).coef_, rtol=1e-6)


def test_a_constant_column_stays_out(rng):
    X, y = data(rng, dtype=np.float32)
    X[:, 2] = 1000.0
    model = warpfuse.LinearRegression().fit(on_device(X), y)
    assert model.coef_[2] == 0.0


def test_what_the_host_alone_fits_says_so(rng):
    X, y = data(rng, dtype=np.float64)
    for model in (warpfuse.Ridge(positive=True), warpfuse.LinearSVR(), warpfuse.QuantileRegressor()):
        with pytest.raises(ValueError, match="fitted on the CPU; give it X on the host"):
            model.fit(on_device(X), y)
    with pytest.raises(ValueError, match="PCA cannot fit an array on a GPU: svd_solver='full' is not offered"):
        warpfuse.PCA(2, svd_solver="full").fit(on_device(X))
    with pytest.raises(ValueError, match="2D array"):
        warpfuse.Ridge().fit(on_device(y), y)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        warpfuse.Ridge().fit(on_device(X), y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_singular_vectors_stay_where_x_lies(dtype, rng):
    X, _ = data(rng, 60, 5, dtype)
    there, exact = on_device(X), dtype == np.float64
    near = {"rtol": 1e-8 if exact else 2e-3, "atol": 1e-8 if exact else 2e-3}
    for ours in (warpfuse.TruncatedSVD(2), warpfuse.PCA(2), warpfuse.PCA(2, whiten=True, svd_solver="arpack")):
        with warpfuse.config_context(device="cpu"):
            expected = ours.fit_transform(X)
            names = ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_")
            attributes = [getattr(ours, name) for name in names]
            back = ours.inverse_transform(expected)
        before = counts()
        found = ours.fit_transform(there)
        assert max(crossed(before)) < X.nbytes
        assert lies_on_gpu(found) and lies_on_gpu(ours.components_) and ours.n_features_in_ == 5
        for name, value in zip(names, attributes, strict=True):
            assert getattr(ours, name).dtype == dtype
            np.testing.assert_allclose(getattr(ours, name), value, **near)
        np.testing.assert_allclose(found, expected, **near)
        np.testing.assert_allclose(ours.inverse_transform(found), back, **near)
        with pytest.raises(ValueError, match="expecting 5 features"):
            ours.transform(on_device(X[:, :4]))
        # X of the host again.
        np.testing.assert_allclose(ours.transform(X), expected, **near)
        assert not lies_on_gpu(ours.components_)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        warpfuse.PCA(2).fit(on_device(np.where(X == X[3, 1], np.nan, X)))


def test_searches_for_a_penalty_read_x_where_it_lies(rng):
    X, y = data(rng, 90, 4, np.float64)
    labels = np.where(y > 1, "yes", "no")
    plain = {"scoring": "accuracy", "use_legacy_attributes": False, "solver": "saga"}
    logistic = warpfuse.LogisticRegressionCV(Cs=[1e-3, 1.0], cv=3, l1_ratios=(0.0, 1.0), **plain)
    for search, target in ((warpfuse.RidgeCV(alphas=[1e-2, 1e3], cv=3), y), (logistic, labels)):
        with warpfuse.config_context(device="cpu"):
            expected = clone(search).fit(X, target)
            shown = expected.predict(X)
        found = search.fit(on_device(X), target)
        assert lies_on_gpu(found.coef_) and found.n_features_in_ == 4
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-4, atol=1e-5)
        there = found.predict(on_device(X))
        if target is y:
            assert found.alpha_ == expected.alpha_
            np.testing.assert_allclose(found.best_score_, expected.best_score_, rtol=1e-9)
            np.testing.assert_allclose(there, shown, rtol=1e-6)
        else:
            assert (found.C_, found.l1_ratio_) == (expected.C_, expected.l1_ratio_)
            np.testing.assert_allclose(found.scores_, expected.scores_)
            np.testing.assert_array_equal(there, shown)
            np.testing.assert_allclose(found.predict_proba(on_device(X)), expected.predict_proba(X), atol=1e-5)
    for model, words in [
        (warpfuse.RidgeCV(cv=3, scoring="neg_mean_squared_error"), "other scores than R²"),
        (warpfuse.RidgeCV(), "leave-one-out"),
        (warpfuse.LogisticRegressionCV(cv=3, class_weight="balanced", **plain), "with weights"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.fit(on_device(X), y if "Ridge" in type(model).__name__ else labels)


def test_kernels_of_points_on_a_gpu(rng):
    X, y = data(rng, 40, 3, np.float64)
    with warpfuse.config_context(device="cpu"):
        expected = warpfuse.KernelRidge(kernel="rbf", alpha=0.1).fit(X, y)
        shown = expected.predict(X)
    found = warpfuse.KernelRidge(kernel="rbf", alpha=0.1).fit(on_device(X), on_device(y))
    assert lies_on_gpu(found.dual_coef_)
    np.testing.assert_allclose(found.dual_coef_, expected.dual_coef_, rtol=1e-6, atol=1e-9)
    there = found.predict(on_device(X))
    assert lies_on_gpu(there)
    np.testing.assert_allclose(there, shown, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.predict(X), shown, rtol=1e-6, atol=1e-9)


def test_the_host_fits_them_whatever_the_device(rng):
    """On a device with kernels as on the CPU, and several targets at once."""
    X, y = data(rng, dtype=np.float64)
    both = np.column_stack([y, -y])
    for model, target in [
        (warpfuse.Ridge(positive=True), y),
        (warpfuse.Ridge(positive=True), both),
        (warpfuse.LinearRegression(positive=True), both),
        (warpfuse.Lasso(alpha=0.01, positive=True), y),
        (warpfuse.LassoCV(alphas=5, cv=3, positive=True), y),
        (warpfuse.QuantileRegressor(alpha=0.01), y),
        (warpfuse.LinearSVR(), y),
        (warpfuse.LinearSVC(loss="hinge"), y > 1),
    ]:
        found = model.fit(X, target).coef_.copy()
        with warpfuse.config_context(device="cpu"):
            np.testing.assert_array_equal(found, model.fit(X, target).coef_)


def test_matrices_of_other_libraries(rng):
    X, _ = data(rng, dtype=np.float64)
    y, p = rng.normal(size=5), rng.normal(size=60)
    placed = warpfuse.Matrix(on_device(X))
    for found, expected in [
        (placed @ on_device(y), X @ y),
        (placed.T @ on_device(p), X.T @ p),
        (placed.fused(on_device(y), v=on_device(p)), X.T @ (p * (X @ y))),
        (placed.objective("squared", on_device(y), on_device(p))[1], X.T @ (X @ y - p)),
    ]:
        assert isinstance(found, OnDevice)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    with pytest.raises(ValueError, match=r"shape \(5,\)"):
        placed.fused(on_device(p))


def test_a_dataset_stays_where_it_lies(rng):
    X, y = data(rng, dtype=np.float64)
    placed = warpfuse.Dataset(on_device(X))
    assert placed.device.startswith("emulator") and placed.shape == X.shape
    np.testing.assert_allclose(warpfuse.Ridge().fit(placed, y).coef_, warpfuse.Ridge().fit(X, y).coef_, rtol=1e-6)
    with pytest.raises(ValueError, match="was requested"):
        warpfuse.Dataset(on_device(X), device="cuda:1")


def test_where_arrays_lie():
    assert lies_on_gpu(on_device(np.zeros(2))) and not lies_on_gpu(np.zeros(2))
    assert not any(map(lies_on_gpu, ([1.0], None, sparse.eye_array(2), ByDlpack(np.zeros(2)))))
    with warpfuse.config_context(device="cpu"), pytest.raises(ValueError, match="lies on cuda:0, but device='cpu'"):
        warpfuse.Ridge().fit(on_device(np.zeros((3, 2))), np.zeros(3))
