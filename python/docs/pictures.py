"""Draws the guide's pictures: ``python python/docs/pictures.py``. Needs matplotlib."""

from pathlib import Path

import matplotlib
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_diabetes, make_classification
from sklearn.linear_model import LogisticRegression as Theirs
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import warpfuse

matplotlib.use("svg")
# The same file every time.
matplotlib.rcParams["svg.hashsalt"] = "warpfuse"
import matplotlib.pyplot as plt  # noqa: E402

FOLDER = Path(__file__).with_name("pictures")


def save(figure, name):
    figure.tight_layout()
    figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


def regularisation_path():
    """Coefficients along a path of penalties, X placed once, and the cross-validated score."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    names, X = list(X.columns), StandardScaler().fit_transform(X)
    data = warpfuse.Dataset(X)
    alphas = np.logspace(1.7, -1.5, 40)
    model = warpfuse.Lasso(warm_start=True, tol=1e-8)
    coefs = [model.set_params(alpha=alpha).fit(data, y).coef_.copy() for alpha in alphas]
    scores = warpfuse.path_scores(
        warpfuse.Lasso(tol=1e-8), data, y, param_name="alpha", param_range=alphas, cv=5
    ).mean(axis=1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    for name, path in zip(names, np.transpose(coefs), strict=True):
        left.plot(alphas, path, label=name)
    left.set(xscale="log", xlabel="alpha", ylabel="coefficient", title="Lasso on the diabetes data")
    left.legend(fontsize=7, ncols=2)
    right.plot(alphas, scores)
    right.axvline(alphas[scores.argmax()], color="grey", linestyle=":")
    right.set(xscale="log", xlabel="alpha", ylabel="R², 5 folds", title="cross-validated score")
    save(figure, "regularisation_path")


def convergence():
    """The gradient over the iterations, from the progress callback."""
    X, y = make_classification(4000, 200, n_informative=40, random_state=3)
    figure, axes = plt.subplots(figsize=(5.5, 3.4))
    for C in (0.01, 1.0, 100.0):
        told = []
        with warpfuse.config_context(progress=lambda *step: told.append(step)):
            warpfuse.LogisticRegression(C=C, tol=1e-4).fit(X, y)
        axes.semilogy([step[0] for step in told], [step[2] for step in told], marker="o", label=f"C = {C:g}")
    axes.set(xlabel="iteration", ylabel="gradient, of that at the start", title="Newton's method, logistic loss")
    axes.legend()
    save(figure, "convergence")


def calibration():
    """Probabilities against frequencies, next to scikit-learn's: the curves lie on each other."""
    X, y = make_classification(20_000, 30, n_informative=10, flip_y=0.15, random_state=4)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=4)
    figure, axes = plt.subplots(figsize=(4.2, 3.8))
    axes.plot([0, 1], [0, 1], color="grey", linestyle=":")
    models = {"scikit-learn": (Theirs(), "-", 4), "warpfuse": (warpfuse.LogisticRegression(), "--", 1.5)}
    for name, (model, line, width) in models.items():
        probabilities = model.fit(X_train, y_train).predict_proba(X_test)[:, 1]
        axes.plot(*calibration_curve(y_test, probabilities, n_bins=10)[::-1], line, linewidth=width, label=name)
    axes.set(xlabel="predicted probability", ylabel="frequency", title="calibration")
    axes.legend()
    save(figure, "calibration")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for draw in (regularisation_path, convergence, calibration):
        draw()
