"""Which penalty predicts diabetes best? Cross-validated R² of three linear models."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, Ridge
from sklearn.model_selection import KFold, cross_val_score

X, y = load_diabetes(return_X_y=True)
folds = KFold(5, shuffle=True, random_state=0)
models = [LinearRegression(), Ridge(alpha=0.1), Lasso(alpha=0.05, tol=1e-8), ElasticNet(alpha=0.001, tol=1e-8)]
for model in models:
    print(cross_val_score(model, X, y, cv=folds).mean())
print(np.count_nonzero(Lasso(alpha=0.5, tol=1e-8).fit(X, y).coef_))
