"""Features that an l1 penalty leaves over, and recursive elimination."""

from sklearn.datasets import load_wine
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
sparse = LogisticRegression(l1_ratio=1.0, solver="saga", C=0.1, max_iter=20_000, tol=1e-7)
selector = SelectFromModel(sparse, threshold=1e-6).fit(X, y)
print(selector.get_support().sum())
ranking = RFE(LogisticRegression(max_iter=1000), n_features_to_select=5, step=2).fit(X, y).ranking_
print(*ranking)
model = make_pipeline(SelectFromModel(sparse, threshold=1e-6), LogisticRegression(max_iter=1000))
print(cross_val_score(model, X, y, cv=3).mean())
