"""Iris as LIBSVM text, and what scikit-learn makes of it: writes iris.svm and iris.json."""
import json
from pathlib import Path
import numpy as np, sklearn
from sklearn import metrics as M
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, PoissonRegressor
from sklearn.svm import LinearSVC
here = Path(__file__).parent
x, y = load_iris(return_X_y=True)
dump_svmlight_file(x, y, str(here / "iris.svm"), zero_based=False)
L = lambda a: np.asarray(a).tolist()
two = y > 0
tight = dict(tol=1e-12, max_iter=100000)
def summary(m, x, y, proba=True):
    p = m.predict(x)
    out = dict(coef=L(m.coef_ if len(m.coef_) > 1 else m.coef_[0]), intercept=L(m.intercept_ if len(m.intercept_) > 1 else m.intercept_[0]), accuracy=M.accuracy_score(y, p))
    if proba: out["log_loss"] = M.log_loss(y, m.predict_proba(x))
    return out
balanced = {0: 1.0, 1: 2.0, 2: 0.5}
out = dict(source=f"scikit-learn {sklearn.__version__}",
    multinomial=summary(LogisticRegression(C=0.5, **tight).fit(x, y), x, y),
    weighted=summary(LogisticRegression(C=0.5, class_weight=balanced, **tight).fit(x, y), x, y),
    binary=summary(LogisticRegression(C=2.0, **tight).fit(x[two], y[two]), x[two], y[two]),
    svc=summary(LinearSVC(C=0.1, dual=False, **tight).fit(x, y), x, y, proba=False))
for name, m in dict(lasso=Lasso(alpha=0.02, **tight), elasticnet=ElasticNet(alpha=0.05, l1_ratio=0.3, **tight), poisson=PoissonRegressor(alpha=0.1, **tight)).items():
    m.fit(x, y)
    out[name] = dict(coef=L(m.coef_), intercept=float(m.intercept_), score=m.score(x, y))
(here / "iris.json").write_text(json.dumps(out))
