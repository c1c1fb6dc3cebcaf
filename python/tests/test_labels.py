"""Labels are numbered by the library: in a byte, in one read where all classes are among the first."""

import numpy as np
import pytest

import warpfuse
from warpfuse import _linear, _native

#: More than are looked at first, by several threads.
MANY = 300_000


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "bool"])
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
    for labels in (np.array([str(n) for n in range(257)]), np.array(["b", "a"])[::-1], np.array(["a", "b"], ">U3"), np.array(["", ""])):
        found = _linear._encoded(labels)
        if labels.flags.c_contiguous and labels.dtype.isnative and len(labels) < 257:
            np.testing.assert_array_equal(found[0], np.unique(labels))
        else:
            assert found is None


def test_more_than_256_classes_are_numpys():
    assert _native.encode(np.arange(257)) is None
    assert _native.encode(np.arange(MANY)) is None
    y = np.arange(600) % 300
    X = (y[:, None] == np.arange(300)).astype(np.float64)
    with warpfuse.config_context(device="cpu", fallback="error"):
        model = warpfuse.LogisticRegression(max_iter=50).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)


def test_truths_are_their_numbers_and_not_copied(rng):
    from warpfuse._linear import _encoded

    labels = rng.random(1_000) < 0.3
    classes, codes = _encoded(labels)
    assert classes.tolist() == [False, True] and np.shares_memory(codes, labels)
    # Of one class, and of every other element, NumPy's numbers.
    for other in (np.ones(9, bool), labels[::2]):
        expected = np.unique(other, return_inverse=True)
        found = _encoded(other) or expected
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])
