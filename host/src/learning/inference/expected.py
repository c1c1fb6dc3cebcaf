"""Writes scipy.json: tails and quantiles that the tests of `distributions` compare with.

Needs scipy:  python expected.py > scipy.json
"""

import json

from scipy import special, stats

XS = [1e-8, 0.1, 0.5, 1.0, 1.96, 3.0, 8.0, 25.0]
print(json.dumps({
    "normal": [[x, float(special.erfc(x / 2**0.5))] for x in XS],
    "t": [[df, x, float(2 * stats.t.sf(x, df))] for df in [1, 2, 5, 20, 431, 1e4, 1e6] for x in XS[1:7]],
    "quantile": [[df, float(stats.t.ppf(0.975, df))] for df in [1, 2, 5, 20, 431, 1e6]],
}))
