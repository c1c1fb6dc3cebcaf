"""Fits that are interrupted again and again end with the bits of those that are not."""

import numpy as np
import pytest
import scipy.sparse as sp

import warpfuse

ROWS, COLS = 300, 12
rng = np.random.default_rng(3)
X = rng.normal(size=(ROWS, COLS))
NUMBERS = X @ rng.normal(size=COLS) + rng.normal(size=ROWS)
LABELS = (NUMBERS + rng.normal(size=ROWS) > 0).astype(int)
COUNTS = np.floor(np.exp(NUMBERS / 8))
GRAPH = sp.random_array((60, 60), density=0.1, rng=rng, format="csr")

FITS = {
    "ridge": lambda: warpfuse.Ridge(alpha=0.1, solver="lsqr", tol=1e-10).fit(X, NUMBERS).coef_,
    "lasso": lambda: warpfuse.Lasso(alpha=0.01, tol=1e-10).fit(X, NUMBERS).coef_,
    "logistic": lambda: warpfuse.LogisticRegression(tol=1e-10).fit(X, LABELS).coef_,
    "poisson": lambda: warpfuse.PoissonRegressor(tol=1e-10).fit(X, COUNTS).coef_,
    "several targets": lambda: warpfuse.Ridge(solver="lsqr", tol=1e-10).fit(X, np.c_[NUMBERS, NUMBERS**2]).coef_,
    "singular vectors": lambda: warpfuse.TruncatedSVD(2, algorithm="arpack", random_state=0).fit(X).components_,
    "principal components": lambda: warpfuse.PCA(2, svd_solver="arpack", random_state=0).fit(X).components_,
    "hits": lambda: np.array(list(warpfuse.hits(GRAPH)[0])),
    "pagerank": lambda: np.array(list(warpfuse.pagerank(GRAPH, tol=1e-12))),
    "path": lambda: warpfuse.path_scores(
        warpfuse.LogisticRegression(), X, LABELS, param_name="C", param_range=[0.1, 1.0, 10.0], cv=3
    ),
}


class Ended(Exception):
    """What ends a fit on its way."""


@pytest.mark.parametrize("name", FITS)
def test_interrupted_fits_have_the_bits_of_others(name, tmp_path):
    fit, file = FITS[name], tmp_path / "checkpoint"
    with warpfuse.config_context(device="cpu"):
        expected = fit()
    for part in range(1, 400):
        seen = 0

        def step(*_):
            nonlocal seen
            seen += 1
            if seen > part:
                raise Ended

        try:
            with (
                warpfuse.config_context(device="cpu", progress=step),
                warpfuse.checkpoint(file, every=0),
            ):
                found = fit()
        except Ended:
            continue
        np.testing.assert_array_equal(found, expected)
        assert list(tmp_path.iterdir()) == []
        return
    pytest.fail("it gets nowhere")


def test_files_stay_after_an_exception_and_are_of_one_fit(tmp_path):
    file = tmp_path / "checkpoint"

    def end(iteration, *_):
        if iteration > 2:
            raise Ended

    def fit(C):
        with warpfuse.config_context(device="cpu", progress=end), warpfuse.checkpoint(file, every=0):
            warpfuse.LogisticRegression(C=C, tol=1e-10).fit(X, LABELS)

    with pytest.raises(Ended):
        fit(1.0)
    assert file.exists()
    with pytest.raises(ValueError, match="of another fit: expected"):
        fit(2.0)


def test_what_makes_no_sense_is_refused(tmp_path):
    with pytest.raises(ValueError, match="every must be a number of seconds"):
        with warpfuse.checkpoint(tmp_path / "a", every=-1):
            pass
    with warpfuse.checkpoint(tmp_path / "a"):
        with pytest.raises(RuntimeError, match="do not nest"):
            with warpfuse.checkpoint(tmp_path / "b"):
                pass
