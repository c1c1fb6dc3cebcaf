"""Labels are numbered by the library as NumPy numbers them: in a byte where that is enough, in one read where a sample has all."""

import numpy as np
import pytest

import warpfuse
from warpfuse import _linear, _native

#: More than are looked at first, by several threads.
MANY = 300_000


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool", "float64", "float32"])
@pytest.mark.parametrize("count", [5, MANY])
def test_numbers_are_those_of_numpy(dtype, count, rng):
    labels = rng.integers(0, 2 if dtype == "bool" else 100, count).astype(dtype)
    classes, codes = _native.encode(labels)
    expected = np.unique(labels, return_inverse=True)
    np.testing.assert_array_equal(classes, expected[0])
    np.testing.assert_array_equal(codes, expected[1])
    assert (classes.dtype, codes.dtype) == (labels.dtype, np.uint8)


@pytest.mark.parametrize("kinds", [2, 3, 8, 9, 256])
def test_a_class_that_comes_late_is_found(kinds):
    labels = np.zeros(MANY, np.int64)
    # The smallest is the last, so that all others have another number than they seem to have.
    labels[-kinds:] = -np.arange(kinds)
    classes, codes = _native.encode(labels)
    np.testing.assert_array_equal(classes, np.arange(1 - kinds, 1))
    np.testing.assert_array_equal(codes, labels + kinds - 1)


@pytest.mark.parametrize("count", [5, 1_000, MANY])
@pytest.mark.parametrize("kinds", [1, 2, 5, 60])
def test_text_is_numbered_as_by_numpy(count, kinds, rng):
    names = np.array(["", "a", "ab", "b", "ä", "\U0001f600", "aa", "Z"] + [f"name {number}" for number in range(60)])[:kinds]
    labels = names[rng.integers(0, kinds, count)]
    classes, codes = _linear._encoded(labels)
    expected = np.unique(labels, return_inverse=True)
    np.testing.assert_array_equal(classes, expected[0])
    np.testing.assert_array_equal(codes, expected[1])
    assert (classes.dtype, codes.dtype) == (labels.dtype, np.uint8)


def test_text_that_is_numpys():
    for labels in (np.array(["b", "a", "c"])[::-1], np.array(["a", "b"], ">U3"), np.array(["", ""])):
        found = _linear._encoded(labels)
        if labels.flags.c_contiguous and labels.dtype.isnative:
            np.testing.assert_array_equal(found[0], np.unique(labels))
        else:
            assert found is None


@pytest.mark.parametrize("of", [np.int64, np.float64, str])
def test_many_classes_have_longer_numbers(of):
    labels = np.array(list(map(of, range(1_000))))[np.arange(MANY) * 7 % 1_000]
    classes, codes = _linear._encoded(labels)
    expected = np.unique(labels, return_inverse=True)
    np.testing.assert_array_equal(classes, expected[0])
    np.testing.assert_array_equal(codes, expected[1])
    assert codes.dtype == np.uint32


def test_long_numbers_and_far_ones_are_classes():
    for labels in (np.array([2**62 + 1, -5, 2**62 + 1, 2**62]), np.array([1e300, -0.0, 0.0, -1e300])):
        classes, codes = _native.encode(labels)
        np.testing.assert_array_equal(classes, np.unique(labels))
        np.testing.assert_array_equal(classes[codes], labels)


def test_more_than_256_classes_are_fitted():
    y = np.arange(600) % 300
    X = (y[:, None] == np.arange(300)).astype(np.float64)
    with warpfuse.config_context(device="cpu", fallback="error"):
        model = warpfuse.LogisticRegression(max_iter=50).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)


def test_numbers_that_are_no_labels_are_scikit_learns_to_name():
    for other in (np.array([0.5, 1.0]), np.array([np.nan, 1.0]), np.ones(4, complex), np.arange(6)[::2], np.ones(3, object)):
        assert _native.encode(other) is None
    X = np.arange(8.0).reshape(4, 2)
    for _ in range(2):
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            warpfuse.LogisticRegression().fit(X, [0.5, 1.0, 1.0, 0.5])
        assert warpfuse.LogisticRegression().fit(X, [2.0, 1.0, 1.0, 2.0]).classes_.tolist() == [1.0, 2.0]


@pytest.fixture(scope="module")
def large():
    """X, classes, and the coefficients of a fit that ends after a few iterations: what is compared are the labels."""
    X = np.random.default_rng(3).standard_normal((120_000, 2))
    y = (X[:, 0] > 0.1).astype(np.int64)
    with warpfuse.config_context(device="cpu", fallback="error"):
        return X, y, warpfuse.LogisticRegression(tol=0.1).fit(X, y).coef_


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "U3"])
def test_labels_of_a_large_fit_are_read_where_they_lie(dtype, large):
    X, y, expected = large
    labels = np.array(["no", "yes"])[y] if dtype == "U3" else y.astype(dtype)
    with warpfuse.config_context(device="cpu", fallback="error"):
        for _ in range(2):
            model = warpfuse.LogisticRegression(tol=0.1).fit(X, labels)
            np.testing.assert_array_equal(model.classes_, np.unique(labels))
            np.testing.assert_array_equal(model.coef_, expected)
            assert model.classes_.dtype == labels.dtype
