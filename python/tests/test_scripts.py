"""Ten scripts as people publish them give the same scores with and without ``python -m warpfuse``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("scripts")
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))

# Runs all scripts in one process: importing scikit-learn takes longer than most of them.
DRIVER = """
import contextlib, io, json, runpy, sys, warnings
warnings.simplefilter("ignore")
told = {}
for script in sys.argv[1:]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(script, run_name="__main__")
    told[script] = out.getvalue().split()
told["served"] = {}
if "warpfuse" in sys.modules:
    import warpfuse
    told["served"] = warpfuse.fits()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    driver = tmp_path_factory.mktemp("scripts") / "driver.py"
    driver.write_text(DRIVER)
    scripts = [str(FOLDER / f"{name}.py") for name in SCRIPTS]

    def run(*how):
        command = [sys.executable, *how, str(driver), *scripts]
        end = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert end.returncode == 0, end.stderr
        return json.loads(end.stdout.splitlines()[-1])

    return run(), run("-m", "warpfuse")


def test_there_are_ten():
    assert len(SCRIPTS) == 10


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_same_scores(name, scores):
    plain, accelerated = (found[str(FOLDER / f"{name}.py")] for found in scores)
    assert plain and len(plain) == len(accelerated)
    assert [float(a) for a in accelerated] == pytest.approx([float(p) for p in plain], rel=0, abs=1e-3)


def test_warpfuse_fitted_them(scores):
    plain, accelerated = (found["served"] for found in scores)
    assert plain == {}
    replaced = {
        "ElasticNet", "GammaRegressor", "KernelRidge", "Lasso", "LinearRegression", "LinearSVC", "LinearSVR",
        "LogisticRegression", "PCA", "PoissonRegressor", "Ridge", "TruncatedSVD", "TweedieRegressor",
    }
    assert set(accelerated) == replaced
    assert all(counts["served"] > 0 and not counts["fell_back"] for counts in accelerated.values()), accelerated
