"""A grid search over the penalty of a multinomial model, in a pipeline."""

from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_iris(return_X_y=True)
pipeline = Pipeline([("scale", StandardScaler()), ("model", LogisticRegression(max_iter=1000, tol=1e-8))])
search = GridSearchCV(
    pipeline, {"model__C": [0.1, 1.0, 10.0]}, cv=StratifiedKFold(3), scoring=["accuracy", "neg_log_loss"], refit="accuracy"
)
search.fit(X, y)
print(*search.cv_results_["mean_test_accuracy"], *search.cv_results_["mean_test_neg_log_loss"])
print(search.best_params_["model__C"])
