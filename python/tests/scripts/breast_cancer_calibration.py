"""A support vector classifier whose scores are calibrated to probabilities."""

from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
for method in ("sigmoid", "isotonic"):
    base = make_pipeline(StandardScaler(), LinearSVC(C=0.05, dual=False, max_iter=10_000, tol=1e-6))
    model = CalibratedClassifierCV(base, method=method, cv=3).fit(X_train, y_train)
    probabilities = model.predict_proba(X_test)[:, 1]
    print(brier_score_loss(y_test, probabilities), roc_auc_score(y_test, probabilities))
    print(calibration_curve(y_test, probabilities, n_bins=3)[0].mean())
