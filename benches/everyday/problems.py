"""The everyday problems: name, estimator, parameters, X and y, in the order of the table."""

import numpy as np
from scipy import sparse
from sklearn import datasets
from sklearn.preprocessing import PolynomialFeatures, StandardScaler


def scaled(x):
    return StandardScaler().fit_transform(np.asarray(x, float))


def one_hot(rows, groups, seed):
    """Indicators of `groups`: those of each group add up to 1."""
    rng = np.random.default_rng(seed)
    return np.hstack([np.eye(size)[rng.integers(0, size, rows)] for size in groups])


def counts(x, seed, scale=0.4):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=x.shape[1]) / np.sqrt(x.shape[1])
    return rng.poisson(np.exp(0.5 + scale * (x @ w))).astype(float)


def labelled(rows, cols, informative, redundant=0, seed=7, flip=0.1, **more):
    return datasets.make_classification(
        rows, cols, n_informative=informative, n_redundant=redundant, random_state=seed, flip_y=flip, **more
    )


def bundled():
    x, y = datasets.load_diabetes(return_X_y=True)
    for name, estimator, more in [
        ("linreg", "linreg", {}),
        ("ridge", "ridge", dict(alpha=1.0)),
        ("ridge weak", "ridge", dict(alpha=1e-3)),
        ("lasso", "lasso", dict(alpha=0.1)),
        ("lasso weak", "lasso", dict(alpha=1e-3)),
        ("enet", "enet", dict(alpha=0.01, l1_ratio=0.5)),
        ("svr", "svr", dict(c=1.0, epsilon=0.1)),
    ]:
        yield f"diabetes {name}", estimator, more, x, y
    poly = scaled(PolynomialFeatures(2, include_bias=False).fit_transform(x))
    yield "diabetes squares lasso", "lasso", dict(alpha=0.5), poly, y
    yield "diabetes squares linreg", "linreg", {}, poly, y
    x, y = datasets.load_breast_cancer(return_X_y=True)
    x, y, raw = scaled(x), y.astype(float), x
    for name, estimator, more in [
        ("l2", "logreg", dict(c=1.0, penalty="l2")),
        ("l2 weak", "logreg", dict(c=100.0, penalty="l2")),
        ("l1", "logreg", dict(c=1.0, penalty="l1")),
        ("elasticnet", "logreg", dict(c=1.0, penalty="elasticnet", l1_ratio=0.5)),
        ("svc", "svc", dict(c=1.0)),
    ]:
        yield f"cancer {name}", estimator, more, x, y
    yield "cancer raw l2", "logreg", dict(c=1.0, penalty="l2"), raw, y
    x, y = datasets.load_iris(return_X_y=True)
    yield "iris multinomial", "logreg", dict(c=1.0, penalty="l2"), x, y.astype(float)
    yield "iris svc", "svc", dict(c=1.0), x, y.astype(float)
    x, y = datasets.load_wine(return_X_y=True)
    yield "wine multinomial", "logreg", dict(c=1.0, penalty="l2"), scaled(x), y.astype(float)
    yield "wine multinomial l1", "logreg", dict(c=1.0, penalty="l1"), scaled(x), y.astype(float)
    x, y = datasets.load_digits(return_X_y=True)
    yield "digits multinomial", "logreg", dict(c=1.0, penalty="l2"), x / 16, y.astype(float)
    yield "digits raw multinomial", "logreg", dict(c=1.0, penalty="l2"), x, y.astype(float)
    yield "digits multinomial l1", "logreg", dict(c=1.0, penalty="l1"), x / 16, y.astype(float)
    yield "digits svc", "svc", dict(c=1.0), x / 16, y.astype(float)
    even = (y % 2).astype(float)
    yield "digits even l1", "logreg", dict(c=1.0, penalty="l1"), x / 16, even
    yield "digits ridge", "ridge", dict(alpha=1.0), x, y.astype(float)
    yield "digits kernel ridge", "kernel", dict(alpha=1.0, gamma=1 / 64), x / 16, y.astype(float)
    x, y = datasets.load_linnerud(return_X_y=True)
    yield "linnerud ridge", "ridge", dict(alpha=1.0), x, y[:, 0]


def one_hot_and_collinear():
    x = one_hot(5000, [7, 12, 5, 9, 10, 15], 0)
    rng = np.random.default_rng(1)
    y = x @ rng.normal(size=x.shape[1]) + rng.normal(size=5000)
    yield "one-hot 5000x58 linreg", "linreg", {}, x, y
    yield "one-hot 5000x58 ridge", "ridge", dict(alpha=1.0), x, y
    yield "one-hot 5000x58 lasso", "lasso", dict(alpha=0.01), x, y
    yield "one-hot 5000x58 lasso weak", "lasso", dict(alpha=1e-4), x, y
    yield "one-hot 5000x58 logreg", "logreg", dict(c=1.0, penalty="l2"), x, (y > 0).astype(float)
    yield "one-hot 5000x58 logreg l1", "logreg", dict(c=1.0, penalty="l1"), x, (y > 0).astype(float)
    yield "one-hot 5000x58 poisson", "glm", dict(alpha=0.1, family="poisson"), x, counts(x, 2)
    base = rng.normal(size=(1000, 10))
    x = np.hstack([base, base + 1e-4 * rng.normal(size=base.shape)])
    y = base.sum(1) + 0.1 * rng.normal(size=1000)
    yield "twins 1000x20 linreg", "linreg", {}, x, y
    yield "twins 1000x20 lasso", "lasso", dict(alpha=0.01), x, y
    yield "twins 1000x20 enet", "enet", dict(alpha=0.01, l1_ratio=0.5), x, y
    yield "twins 1000x20 logreg", "logreg", dict(c=1.0, penalty="l2"), x, (y > 0).astype(float)
    t = np.linspace(0, 1, 500)
    x = np.vander(t, 11, increasing=True)[:, 1:]
    yield "powers of degree 10 linreg", "linreg", {}, x, np.sin(4 * t)
    yield "powers of degree 10 ridge", "ridge", dict(alpha=1e-3), x, np.sin(4 * t)


def shapes():
    x, y = datasets.make_regression(200, 2000, n_informative=20, noise=5.0, random_state=0)
    yield "wide 200x2000 lasso", "lasso", dict(alpha=1.0), x, y
    yield "wide 200x2000 ridge", "ridge", dict(alpha=1.0), x, y
    yield "wide 200x2000 linreg", "linreg", {}, x, y
    yield "wide 200x2000 logreg", "logreg", dict(c=1.0, penalty="l2"), x, (y > 0).astype(float)
    yield "wide 200x2000 logreg l1", "logreg", dict(c=0.1, penalty="l1"), x, (y > 0).astype(float)
    x, y = datasets.make_regression(200_000, 20, noise=5.0, random_state=1)
    yield "tall 200000x20 linreg", "linreg", {}, x, y
    yield "tall 200000x20 ridge", "ridge", dict(alpha=1.0), x, y
    yield "tall 200000x20 lasso", "lasso", dict(alpha=1.0), x, y
    yield "tall 200000x20 logreg", "logreg", dict(c=1.0, penalty="l2"), x, (y > 20).astype(float)
    yield "tall 200000x20 poisson", "glm", dict(alpha=1e-3, family="poisson"), x, counts(x, 5)
    x, y = datasets.make_regression(5000, 500, noise=5.0, random_state=2)
    yield "square 5000x500 linreg", "linreg", {}, x, y
    yield "square 5000x500 ridge", "ridge", dict(alpha=1.0), x, y
    yield "square 5000x500 lasso", "lasso", dict(alpha=1.0), x, y
    yield "square 5000x500 logreg", "logreg", dict(c=1.0, penalty="l2"), x, (y > 0).astype(float)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(7, 3))
    yield "tiny 7x3 linreg", "linreg", {}, x, x.sum(1) + rng.normal(size=7)
    yield "tiny 7x3 ridge", "ridge", dict(alpha=1.0), x, x.sum(1) + rng.normal(size=7)
    yield "tiny 7x3 logreg", "logreg", dict(c=1.0, penalty="l2"), x, np.array([0.0, 1, 0, 1, 1, 0, 1])
    x, y = datasets.make_friedman1(2000, 64, noise=0.5, random_state=0)
    yield "kernel ridge 2000x64", "kernel", dict(alpha=1.0, gamma=1 / 64), x, y


def classes():
    x, y = labelled(2000, 40, 12, 2)
    y = y.astype(float)
    yield "classes 2000x40 l1", "logreg", dict(c=1.0, penalty="l1"), x, y
    yield "classes 2000x40 l1 strong", "logreg", dict(c=0.01, penalty="l1"), x, y
    yield "classes 2000x40 none", "logreg", dict(c=1.0, penalty="none"), x, y
    yield "classes 2000x40 svc", "svc", dict(c=1.0), x, y
    x, y = labelled(20_000, 50, 20, 10, seed=3, weights=[0.99], flip=0.005)
    yield "imbalanced 20000x50 l2", "logreg", dict(c=1.0, penalty="l2"), x, y.astype(float)
    yield "imbalanced 20000x50 l1", "logreg", dict(c=1.0, penalty="l1"), x, y.astype(float)
    x, y = labelled(50_000, 50, 20, 5, seed=5, n_classes=5)
    yield "five classes 50000x50", "logreg", dict(c=1.0, penalty="l2"), x, y.astype(float)
    x, y = datasets.make_blobs(3000, 10, centers=8, cluster_std=6.0, random_state=0)
    yield "eight blobs 3000x10", "logreg", dict(c=1.0, penalty="l2"), x, y.astype(float)


def counted():
    rng = np.random.default_rng(9)
    x = rng.normal(size=(5000, 20))
    y = counts(x, 10)
    yield "poisson 5000x20", "glm", dict(alpha=1e-2, family="poisson"), x, y
    yield "poisson 5000x20 free", "glm", dict(alpha=0.0, family="poisson"), x, y
    yield "poisson 5000x20 sqrt", "glm", dict(alpha=0.0, family="poisson", link="sqrt"), x, y
    y = rng.gamma(2.0, np.exp(0.3 * x[:, 0] + 0.2)) + 1e-3
    yield "gamma 5000x20", "glm", dict(alpha=1e-2, family="gamma", link="log"), x, y
    yield "tweedie 5000x20", "glm", dict(alpha=1e-2, family="tweedie", power=1.5, link="log"), x, counts(x, 11)
    y = (rng.uniform(size=5000) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)
    yield "probit 5000x20", "glm", dict(alpha=0.0, family="binomial", link="probit"), x, y


def sparse_ones():
    x = sparse.random(20_000, 5_000, density=2e-3, format="csr", random_state=0)
    rng = np.random.default_rng(12)
    y = x @ rng.normal(size=5_000) + 0.01 * rng.normal(size=20_000)
    yield "sparse 20000x5000 ridge", "ridge", dict(alpha=1.0), x, y
    yield "sparse 20000x5000 lasso", "lasso", dict(alpha=1e-4), x, y
    yield "sparse 20000x5000 logreg", "logreg", dict(c=1.0, penalty="l2"), x, (y > 0).astype(float)
    yield "sparse 20000x5000 logreg l1", "logreg", dict(c=1.0, penalty="l1"), x, (y > 0).astype(float)
    yield "sparse 20000x5000 svc", "svc", dict(c=1.0), x, (y > 0).astype(float)


def everything():
    for part in [bundled, one_hot_and_collinear, shapes, classes, counted, sparse_ones]:
        yield from part()
