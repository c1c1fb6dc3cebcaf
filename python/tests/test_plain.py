"""Which arrays take the short way round scikit-learn's checks: those that the checks would give back as they are."""

import numpy as np
import pytest

import warpfuse
from warpfuse import _native

MANY = 1_000


def plain(X, y):
    return _native.are_plain(X, y, MANY)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("of_y", ["float32", "float64", "int64", "uint8", "bool"])
@pytest.mark.parametrize("rows", [10, MANY])
def test_contiguous_finite_numbers_are_plain(dtype, of_y, rows):
    X, y = np.ones((rows, 4), dtype), np.ones(rows, of_y)
    assert plain(X, y)


class Sub(np.ndarray):
    """An array of somebody else's."""


GOOD = np.ones((10, 4))
BAD_X = {
    "a vector": np.ones(10),
    "three dimensions": np.ones((10, 4, 1)),
    "integers": np.ones((10, 4), int),
    "halves": np.ones((10, 4), np.float16),
    "the other byte order": np.ones((10, 4), ">f8"),
    "every other column": np.ones((10, 8))[:, ::2],
    "no columns": np.ones((10, 0)),
    "fewer rows": np.ones((9, 4)),
    "a list": GOOD.tolist(),
    "a subclass": GOOD.view(Sub),
    "NaN": np.where(np.eye(10, 4) > 0, np.nan, 1.0),
    "infinity": np.where(np.eye(10, 4) > 0, np.inf, 1.0),
    "addresses that are no multiples": np.frombuffer(bytes(321), np.uint8)[1:].view(np.float64).reshape(10, 4),
}
BAD_Y = {
    "a column": np.ones((10, 1)),
    "text": np.array(["a"] * 10),
    "objects": np.ones(10, object),
    "complex": np.ones(10, complex),
    "NaN": np.full(10, np.nan),
    "fewer": np.ones(9),
    "a list": [1.0] * 10,
    "a subclass": np.ones(10).view(Sub),
}


@pytest.mark.parametrize("what", BAD_X)
def test_other_x_is_not_plain(what):
    assert not plain(BAD_X[what], np.ones(10))


@pytest.mark.parametrize("what", BAD_Y)
def test_other_y_is_not_plain(what):
    assert not plain(GOOD, BAD_Y[what])


def test_of_many_values_the_fit_looks():
    X = np.full((MANY, 4), np.nan)
    assert plain(X, np.ones(MANY))
    assert not plain(X[: MANY // 8], np.ones(MANY // 8))


def test_parameters_that_were_valid_are_not_taken_for_others():
    X, y = np.arange(20.0).reshape(10, 2) % 7, np.arange(10.0)
    model = warpfuse.Ridge()
    model.fit(X, y), model.fit(X, y)
    # 1 is no truth, which equals it.
    with pytest.raises(ValueError, match="fit_intercept"):
        model.set_params(fit_intercept=1).fit(X, y)
    with pytest.raises(ValueError, match="alpha"):
        model.set_params(fit_intercept=True, alpha=-1.0).fit(X, y)
    model.set_params(alpha=1.0).fit(X, y)
