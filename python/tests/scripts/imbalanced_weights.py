"""A rare class: class weights, a threshold that is tuned, a curve over the size of the training set."""

from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, make_scorer
from sklearn.model_selection import learning_curve, train_test_split, validation_curve

X, y = make_classification(n_samples=1500, n_features=10, weights=[0.9], flip_y=0.02, class_sep=0.8, random_state=5)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=5, stratify=y)
for weight in (None, "balanced", {0: 1.0, 1: 4.0}):
    model = LogisticRegression(class_weight=weight, max_iter=1000, tol=1e-8).fit(X_train, y_train)
    probabilities = model.predict_proba(X_test)[:, 1]
    print(average_precision_score(y_test, probabilities), f1_score(y_test, model.predict(X_test)), probabilities.mean())
sizes, train, test = learning_curve(
    LogisticRegression(max_iter=1000), X, y, train_sizes=[0.3, 1.0], cv=3, scoring="roc_auc"
)
print(*sizes, *train.mean(axis=1), *test.mean(axis=1))
train, test = validation_curve(
    LogisticRegression(max_iter=1000, tol=1e-8), X, y, param_name="C", param_range=[0.01, 1.0], cv=3,
    scoring=make_scorer(f1_score),
)
print(*train.mean(axis=1), *test.mean(axis=1))
