"""Principal components before a classifier."""

from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X[:900] / 16.0, y[:900], random_state=1)
model = make_pipeline(PCA(n_components=20, svd_solver="arpack", random_state=0), LogisticRegression(C=5.0, max_iter=2000))
model.fit(X_train, y_train)
report = classification_report(y_test, model.predict(X_test), output_dict=True)
print(report["accuracy"], report["macro avg"]["f1-score"], model[0].explained_variance_ratio_.sum())
