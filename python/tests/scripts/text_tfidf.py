"""Short texts of three subjects: TF-IDF, latent semantic analysis, a linear classifier."""

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

subjects = {
    "space": "orbit launch moon rocket engine satellite station crew signal".split(),
    "cooking": "oven butter flour sugar recipe taste salt dinner station".split(),
    "cars": "engine wheel brake road driver fuel speed signal dinner".split(),
}
rng = np.random.default_rng(0)
texts, labels = [], []
for subject, words in subjects.items():
    for _ in range(80):
        texts.append(" ".join(rng.choice(words, size=12)))
        labels.append(subject)
plain = make_pipeline(TfidfVectorizer(), LogisticRegression(C=2.0, max_iter=1000))
latent = make_pipeline(
    TfidfVectorizer(), TruncatedSVD(6, algorithm="arpack", random_state=0), LogisticRegression(max_iter=1000)
)
for model in (plain, latent):
    scores = cross_validate(model, texts, labels, cv=4, scoring=["accuracy", "neg_log_loss"])
    print(scores["test_accuracy"].mean(), scores["test_neg_log_loss"].mean())
