"""Linear models as parts of larger ones: stacking, voting, bagging."""

from sklearn.datasets import make_regression
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.linear_model import ElasticNet, LinearRegression, Ridge
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.svm import LinearSVR

X, y = make_regression(n_samples=400, n_features=12, n_informative=6, noise=15.0, random_state=4)
y = y / y.std()
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=4)
svr = LinearSVR(loss="squared_epsilon_insensitive", dual=False, epsilon=0.05, tol=1e-8, max_iter=100_000)
parts = [("ridge", Ridge(alpha=2.0)), ("net", ElasticNet(alpha=0.01, tol=1e-8)), ("svr", svr)]
print(StackingRegressor(parts, final_estimator=LinearRegression()).fit(X_train, y_train).score(X_test, y_test))
print(VotingRegressor(parts).fit(X_train, y_train).score(X_test, y_test))
bagged = BaggingRegressor(Ridge(alpha=1.0), n_estimators=5, random_state=0).fit(X_train, y_train)
print(bagged.score(X_test, y_test))
print(cross_val_predict(Ridge(alpha=2.0), X, y, cv=5).std())
