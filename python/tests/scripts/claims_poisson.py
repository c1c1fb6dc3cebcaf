"""Claims per year of exposure: Poisson and Tweedie regression with weights, in the manner of an insurer."""

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from sklearn.metrics import mean_poisson_deviance, mean_tweedie_deviance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

rng = np.random.default_rng(3)
n = 2_000
frame = pd.DataFrame(
    {
        "age": rng.integers(18, 80, n),
        "power": rng.integers(4, 12, n),
        "region": rng.choice(["north", "south", "east", "west"], n),
    }
)
exposure = rng.uniform(0.1, 1.0, n)
rate = np.exp(-2.0 + 0.02 * (frame["power"] - 8) + 0.4 * (frame["region"] == "south") - 0.005 * (frame["age"] - 40))
claims = rng.poisson(3 * rate * exposure)
cost = np.where(claims > 0, rng.gamma(2.0, 300.0, n), 0.0) * claims
features = ColumnTransformer([("words", OneHotEncoder(), ["region"]), ("numbers", StandardScaler(), ["age", "power"])])

frequency = make_pipeline(features, PoissonRegressor(alpha=1e-4, max_iter=1000, tol=1e-6))
frequency.fit(frame, claims / exposure, poissonregressor__sample_weight=exposure)
print(mean_poisson_deviance(claims / exposure, frequency.predict(frame), sample_weight=exposure))
print(frequency.score(frame, claims / exposure, sample_weight=exposure))

has = claims > 0
severity = make_pipeline(features, GammaRegressor(alpha=1e-3, max_iter=1000, tol=1e-6))
severity.fit(frame[has], (cost / np.maximum(claims, 1))[has], gammaregressor__sample_weight=claims[has])
print(severity.predict(frame).mean() / 1000.0)

pure = make_pipeline(features, TweedieRegressor(power=1.7, alpha=1e-3, max_iter=1000, tol=1e-6))
pure.fit(frame, cost / exposure, tweedieregressor__sample_weight=exposure)
print(mean_tweedie_deviance(cost / exposure, pure.predict(frame), sample_weight=exposure, power=1.7))
