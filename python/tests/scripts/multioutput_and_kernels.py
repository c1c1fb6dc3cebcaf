"""Several targets at once, and a curve by kernel ridge regression."""

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import RegressorChain
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.pipeline import make_pipeline

rng = np.random.default_rng(7)
x = np.sort(5 * rng.random((160, 1)), axis=0)
Y = np.column_stack([np.sin(x).ravel(), np.cos(x).ravel()]) + 0.1 * rng.standard_normal((160, 2))
poly = make_pipeline(PolynomialFeatures(4, include_bias=False), StandardScaler(), Ridge(alpha=0.01))
print(r2_score(Y, poly.fit(x, Y).predict(x)))
print(RegressorChain(LinearRegression()).fit(x, Y).score(x, Y))
search = GridSearchCV(KernelRidge(kernel="rbf"), {"alpha": [1.0, 0.1], "gamma": [0.1, 1.0]}, cv=3)
search.fit(x, Y[:, 0])
print(search.best_score_, search.best_params_["gamma"])
