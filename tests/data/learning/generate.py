"""Writes the fixtures of the learning tests: data sets that scikit-learn bundles, and tight solutions.

Needs scikit-learn and statsmodels:  python generate.py  (in this folder).

Sources of the data, as scikit-learn's documentation gives them: breast cancer (Wisconsin diagnostic), wine, iris and
optical digits from the UCI Machine Learning Repository (CC BY 4.0); diabetes from Efron, Hastie, Johnstone and
Tibshirani, "Least Angle Regression", Annals of Statistics 32, 2004; linnerud from Tenenhaus, "La régression PLS",
Technip, 1998.
"""

import json
import warnings

import numpy as np
import sklearn
import statsmodels
import statsmodels.api as sm
from scipy.special import expit, logsumexp
from sklearn import datasets, linear_model, svm

warnings.filterwarnings("ignore")


def standard(x):
    deviation = x.std(axis=0)
    return (x - x.mean(axis=0)) / np.where(deviation == 0, 1, deviation)


def weights_of(m):
    """Sample weights that any language can recompute."""
    return 0.5 + (np.arange(m) % 5) / 4.0


def case(estimator, parameters, coef, intercept, objective):
    coef = np.atleast_2d(coef)
    intercept = np.broadcast_to(np.atleast_1d(intercept), (coef.shape[0],))
    return {
        "estimator": estimator,
        "parameters": parameters,
        "coef": coef.tolist(),
        "intercept": [float(b) for b in intercept],
        "objective": float(objective),
    }


def logistic_losses(x, y, coef, intercept):
    classes, codes = np.unique(y, return_inverse=True)
    t = x @ coef.T + intercept
    if len(classes) == 2:
        t = t[:, 0]
        return np.logaddexp(0, t) - codes * t
    return logsumexp(t, axis=1) - t[np.arange(len(y)), codes]


def logistic_gradient(x, y, v, coef, intercept):
    classes, codes = np.unique(y, return_inverse=True)
    t = x @ coef.T + intercept
    if len(classes) == 2:
        return v * (expit(t[:, 0]) - codes)
    p = np.exp(t - logsumexp(t, axis=1)[:, None])
    p[np.arange(len(y)), codes] -= 1
    return v[:, None] * p


def logreg(x, y, penalty="l2", C=1.0, l1_ratio=0.0, intercept=True, balanced=False, weighted=False):
    l1 = {"none": 0.0, "l2": 0.0, "l1": 1.0, "elasticnet": l1_ratio}[penalty]
    l2 = {"none": 0.0, "l2": 1.0, "l1": 0.0, "elasticnet": 1 - l1_ratio}[penalty]
    smooth = l1 == 0
    model = linear_model.LogisticRegression(
        C=C if penalty != "none" else np.inf,
        l1_ratio=l1,
        solver="newton-cholesky" if smooth else "saga",
        tol=1e-13 if smooth else 1e-15,
        max_iter=10_000 if smooth else 300_000,
        fit_intercept=intercept,
        class_weight="balanced" if balanced else None,
        random_state=0,
    )
    v = weights_of(len(y)) if weighted else np.ones(len(y))
    model.fit(x, y, sample_weight=v)
    if balanced:
        classes, codes = np.unique(y, return_inverse=True)
        v = v * (v.sum() / (len(classes) * np.bincount(codes, v)))[codes]
    coef, b = model.coef_, model.intercept_
    strength = (1 / (C * v.sum())) if penalty != "none" else 0.0
    penalty_value = l2 / 2 * (coef**2).sum() + l1 * abs(coef).sum()
    objective = (v @ logistic_losses(x, y, coef, b)) / v.sum() + strength * penalty_value
    residual = logistic_gradient(x, y, v, coef, b) / v.sum()
    gradient = (np.atleast_2d(residual.T) @ x) + strength * l2 * coef
    stationary = np.where(
        coef != 0, gradient + strength * l1 * np.sign(coef), np.maximum(abs(gradient) - strength * l1, 0)
    )
    print(f"  logreg {penalty} C={C}: stationarity {abs(stationary).max():.1e}")
    parameters = {
        "penalty": penalty, "c": C, "l1_ratio": l1_ratio, "fit_intercept": intercept,
        "balanced": balanced, "weighted": weighted,
    }
    return case("logreg", parameters, coef, b, objective)


def svc(x, y, C=1.0, scaling=1.0, intercept=True, weighted=False):
    v = weights_of(len(y)) if weighted else np.ones(len(y))
    model = svm.LinearSVC(C=C, dual=False, tol=1e-13, max_iter=1_000_000, fit_intercept=intercept,
                          intercept_scaling=scaling)
    model.fit(x, y, sample_weight=v)
    classes = np.unique(y)
    total = 0.0
    for row, (w, b) in enumerate(zip(model.coef_, np.broadcast_to(model.intercept_, len(model.coef_)))):
        positive = classes[1] if len(classes) == 2 else classes[row]
        sign = np.where(y == positive, 1.0, -1.0)
        slack = np.maximum(0, 1 - sign * (x @ w + b))
        total += 0.5 * w @ w + 0.5 * (b / scaling) ** 2 + C * v @ slack**2
    parameters = {"c": C, "intercept_scaling": scaling, "fit_intercept": intercept, "weighted": weighted}
    return case("svc", parameters, model.coef_, model.intercept_, total)


def svr(x, y, C, epsilon):
    model = svm.LinearSVR(C=C, epsilon=epsilon, loss="squared_epsilon_insensitive", dual=False, tol=1e-13,
                          max_iter=1_000_000)
    model.fit(x, y)
    w, b = model.coef_, model.intercept_[0]
    slack = np.maximum(0, abs(x @ w + b - y) - epsilon)
    return case("svr", {"c": C, "epsilon": epsilon}, w, b, 0.5 * w @ w + 0.5 * b * b + C * (slack**2).sum())


def ridge(x, y, alpha, weighted=False):
    v = weights_of(len(y)) if weighted else np.ones(len(y))
    model = linear_model.Ridge(alpha=alpha, solver="cholesky").fit(x, y, sample_weight=v)
    w, b = model.coef_, model.intercept_
    return case("ridge", {"alpha": alpha, "weighted": weighted}, w, b, v @ (y - x @ w - b) ** 2 + alpha * w @ w)


def elastic(x, y, alpha, l1_ratio, weighted=False):
    v = weights_of(len(y)) if weighted else np.ones(len(y))
    model = linear_model.ElasticNet(alpha=alpha, l1_ratio=l1_ratio, tol=1e-14, max_iter=1_000_000)
    model.fit(x, y, sample_weight=v)
    w, b = model.coef_, model.intercept_
    objective = v @ (y - x @ w - b) ** 2 / (2 * v.sum())
    objective += alpha * l1_ratio * abs(w).sum() + alpha * (1 - l1_ratio) / 2 * w @ w
    name = "lasso" if l1_ratio == 1 else "elasticnet"
    return case(name, {"alpha": alpha, "l1_ratio": l1_ratio, "weighted": weighted}, w, b, objective)


def half_deviance(family, power, y, mu):
    if family == "binomial":
        return -(y * np.log(mu) + (1 - y) * np.log1p(-mu))
    power = {"gaussian": 0, "poisson": 1, "gamma": 2, "inverse_gaussian": 3}.get(family, power)
    from sklearn.metrics import mean_tweedie_deviance
    return np.array([mean_tweedie_deviance([a], [b], power=power) for a, b in zip(y, mu)]) / 2


def tweedie(x, y, family, power, alpha, weighted=False):
    v = weights_of(len(y)) if weighted else np.ones(len(y))
    model = linear_model.TweedieRegressor(power=power, alpha=alpha, link="log", solver="newton-cholesky",
                                          tol=1e-13, max_iter=10_000)
    model.fit(x, y, sample_weight=v)
    w, b = model.coef_, model.intercept_
    objective = v @ half_deviance(family, power, y, model.predict(x)) / v.sum() + alpha / 2 * w @ w
    parameters = {"family": family, "power": power, "link": "log", "alpha": alpha, "weighted": weighted}
    return case("glm", parameters, w, b, objective)


LINKS = {
    "identity": sm.families.links.Identity, "logit": sm.families.links.Logit, "probit": sm.families.links.Probit,
    "cloglog": sm.families.links.CLogLog, "log": sm.families.links.Log, "inverse": sm.families.links.InversePower,
    "sqrt": sm.families.links.Sqrt, "inverse_squared": sm.families.links.InverseSquared,
}
FAMILIES = {
    "gaussian": sm.families.Gaussian, "binomial": sm.families.Binomial, "poisson": sm.families.Poisson,
    "gamma": sm.families.Gamma, "inverse_gaussian": sm.families.InverseGaussian,
}


def maximum_likelihood(x, y, family, link):
    design = sm.add_constant(x)
    model = sm.GLM(y, design, family=FAMILIES[family](LINKS[link]()))
    fit = model.fit(tol=1e-15, maxiter=1000, tol_criterion="params")
    score = abs(model.score(fit.params, scale=1)).max()
    print(f"  statsmodels {family} {link}: score {score:.1e}")
    objective = half_deviance(family, 0, y, fit.mu).mean()
    parameters = {"family": family, "link": link, "alpha": 0.0, "weighted": False}
    return case("glm", parameters, fit.params[1:], fit.params[0], objective)


def write(name, x, y, cases):
    print(name, x.shape, len(cases))
    fixture = {
        "source": f"scikit-learn {sklearn.__version__}, statsmodels {statsmodels.__version__}",
        "x": np.asarray(x, float).tolist(),
        "y": np.asarray(y, float).tolist(),
        "cases": cases,
    }
    with open(f"{name}.json", "w") as file:
        json.dump(fixture, file, separators=(",", ":"))
        file.write("\n")


def main():
    data = datasets.load_breast_cancer()
    x, y = standard(data.data).round(6), data.target
    write("breast_cancer", x, y, [
        logreg(x, y),
        logreg(x, y, C=0.01, intercept=False),
        logreg(x, y, C=10.0, balanced=True, weighted=True),
        logreg(x, y, penalty="l1", C=0.5),
        logreg(x, y, penalty="elasticnet", C=0.1, l1_ratio=0.3, weighted=True),
        svc(x, y), svc(x, y, C=0.01, scaling=10.0, weighted=True), svc(x, y, intercept=False),
    ])
    write("breast_cancer_raw", data.data, y, [logreg(data.data, y), logreg(data.data, y, C=0.001)])
    few = x[:, :4]
    write("breast_cancer_few", few, y, [
        logreg(few, y, penalty="none"),
        *(maximum_likelihood(few, y, "binomial", link) for link in ("logit", "probit", "cloglog")),
    ])
    data = datasets.load_wine()
    x, y = standard(data.data).round(6), data.target
    write("wine", x, y, [
        logreg(x, y), logreg(x, y, penalty="l1", C=0.5),
        logreg(x, y, penalty="elasticnet", C=1.0, l1_ratio=0.5, weighted=True), svc(x, y),
    ])
    x, y = datasets.load_iris(return_X_y=True)
    write("iris", x, y, [logreg(x, y), logreg(x, y, C=100.0, balanced=True), svc(x, y), svc(x, y, C=10.0)])
    x, y = datasets.load_digits(return_X_y=True)
    x, y = x[:400] / 16, y[:400]
    write("digits", x, y, [logreg(x, y), logreg(x, y, C=0.1, weighted=True), svc(x, y, C=0.1)])
    x, y = datasets.load_diabetes(return_X_y=True)
    x = standard(x).round(6)
    write("diabetes", x, y, [
        ridge(x, y, 1.0), ridge(x, y, 0.01, weighted=True),
        elastic(x, y, 0.1, 1.0), elastic(x, y, 5.0, 1.0, weighted=True), elastic(x, y, 0.5, 0.5),
        elastic(x, y, 0.05, 0.9, weighted=True),
        svr(x, y, 1.0, 0.0), svr(x, y, 0.1, 20.0),
        tweedie(x, y, "poisson", 1, 1.0), tweedie(x, y, "poisson", 1, 0.0, weighted=True),
        tweedie(x, y, "gamma", 2, 0.1), tweedie(x, y, "inverse_gaussian", 3, 0.001),
        tweedie(x, y, "tweedie", 1.5, 0.5), tweedie(x, y, "tweedie", 1.9, 0.0),
        *(maximum_likelihood(x, y, *pair) for pair in [
            ("gaussian", "identity"), ("gaussian", "log"), ("poisson", "log"), ("poisson", "sqrt"), ("gamma", "log"),
            ("inverse_gaussian", "log"),
        ]),
    ])
    # Three targets of the same 20 rows, a fit each.
    data = datasets.load_linnerud()
    x = standard(data.data).round(6)
    for name, y in zip(data.target_names, data.target.T):
        write(f"linnerud_{name.lower()}", x, y, [
            ridge(x, y, 1.0), ridge(x, y, 0.1, weighted=True), elastic(x, y, 0.5, 1.0), elastic(x, y, 0.2, 0.5),
            svr(x, y, 1.0, 1.0), tweedie(x, y, "gamma", 2, 0.1), maximum_likelihood(x, y, "poisson", "log"),
        ])
    # Links with a bounded domain, which all of the iterations must stay in.
    few = x[:, 2:4]
    write("diabetes_few", few, y, [
        *(maximum_likelihood(few, y, *pair) for pair in [
            ("gaussian", "inverse"), ("poisson", "identity"), ("gamma", "inverse"), ("gamma", "identity"),
        ]),
    ])
    one = x[:, 1:2]
    write("diabetes_one", one, y, [
        *(maximum_likelihood(one, y, "inverse_gaussian", link) for link in ("inverse_squared", "inverse")),
    ])


main()
