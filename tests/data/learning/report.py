"""Writes report.json: what report pages show, computed by scikit-learn and statsmodels from the data sets of this folder.

Needs scikit-learn and statsmodels:  python report.py  (in this folder).
"""

import json

import numpy as np
import statsmodels.api as sm
from scipy.special import expit, softmax
from sklearn import calibration, metrics

CURVES = ["breast_cancer", "breast_cancer_raw", "iris", "wine", "digits"]


def load(name):
    data = json.load(open(f"{name}.json"))
    return np.array(data["x"]), np.array(data["y"]), data["cases"]


def curves(name):
    """Of the coefficients of the first logistic regression among the cases."""
    x, y, cases = load(name)
    case = next(c for c in cases if c["estimator"] == "logreg")
    coef, intercept = np.array(case["coef"]), np.array(case["intercept"])
    t = x @ coef.T + intercept
    classes = np.unique(y)
    positive = y == classes[1]
    p = expit(t[:, 0]) if len(classes) == 2 else softmax(t, axis=1)[:, 1]
    fpr, tpr, _ = metrics.roc_curve(positive, p)
    precision, recall, _ = metrics.precision_recall_curve(positive, p)
    found, predicted = calibration.calibration_curve(positive, p, n_bins=10)
    return {
        "data": name,
        "coef": coef.tolist(),
        "intercept": intercept.tolist(),
        "fpr": fpr.tolist(),
        "tpr": tpr.tolist(),
        "precision": precision.tolist(),
        "recall": recall.tolist(),
        "mean_predicted": predicted.tolist(),
        "fraction_of_positives": found.tolist(),
        "auc": metrics.roc_auc_score(positive, p),
        "average_precision": metrics.average_precision_score(positive, p),
        "brier": metrics.brier_score_loss(positive, p),
    }


def inference(name, kind, columns, weighted=False):
    x, y, _ = load(name)
    x = x[:, :columns]
    v = 0.5 + (np.arange(len(y)) % 5) / 4.0 if weighted else None
    design = sm.add_constant(x, has_constant="add")
    if kind == "ols":
        fit = (sm.WLS(y, design, weights=v) if weighted else sm.OLS(y, design)).fit()
    elif kind == "logit":
        codes = (y == np.unique(y)[1]).astype(float)
        fit = sm.Logit(codes, design).fit(tol=1e-12, maxiter=200, disp=0)
    else:
        family = {
            "poisson": sm.families.Poisson(),
            "probit": sm.families.Binomial(sm.families.links.Probit()),
            "gamma": sm.families.Gamma(sm.families.links.Log()),
            "gaussian": sm.families.Gaussian(),
            "inverse_gaussian": sm.families.InverseGaussian(sm.families.links.Log()),
        }[kind]
        fit = sm.GLM(y, design, family=family, var_weights=v).fit(tol=1e-13, tol_criterion="params", maxiter=500)
    interval = np.asarray(fit.conf_int())
    return {
        "data": name,
        "kind": kind,
        "columns": columns,
        "weighted": weighted,
        "dispersion": float(fit.scale),
        "estimates": [
            [float(fit.params[i]), float(fit.bse[i]), float(fit.tvalues[i]), float(fit.pvalues[i]), *map(float, interval[i])]
            for i in [*range(1, columns + 1), 0]
        ],
    }


CASES = [
    ("diabetes", "ols", 10),
    ("diabetes", "ols", 10, True),
    ("linnerud_weight", "ols", 3),
    ("breast_cancer_raw", "logit", 5),
    ("breast_cancer_few", "logit", 4),
    ("breast_cancer_few", "probit", 4),
    ("diabetes", "poisson", 10),
    ("diabetes", "gamma", 10, True),
    ("linnerud_pulse", "gaussian", 3),
    ("linnerud_waist", "inverse_gaussian", 3),
]

json.dump(
    {"curves": [curves(name) for name in CURVES], "inference": [inference(*case) for case in CASES]},
    open("report.json", "w"),
)
