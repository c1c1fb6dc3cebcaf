"""The examples of the guide and of the package's page run, and the guide's pictures are drawn."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import warpfuse

ROOT = Path(__file__).parents[1]
#: What the guide speaks of without making it.
GIVEN = ("X", "y", "alphas", "weights", "claims", "years")


def examples(page):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def names(rng):
    X = rng.normal(size=(80, 5))
    y = np.exp(X @ np.arange(5.0) / 4 + rng.normal(size=80) / 4)
    values = (X, y, np.logspace(-3, 0, 4), rng.random(80), rng.poisson(2.0, 80).astype(float), rng.random(80) + 0.5)
    return dict(zip(GIVEN, values, strict=True))


@pytest.mark.parametrize("page", ["docs/guide.md", "README.md"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_examples_run(page, names, capsys):
    before = warpfuse.get_config()
    found = [code for code in examples(page) if "cupy" not in code and "set_config" not in code]
    assert len(found) >= {"docs/guide.md": 7, "README.md": 1}[page]
    for number, code in enumerate(found):
        exec(compile(code, f"{page}, example {number}", "exec"), names)
    assert warpfuse.get_config() == before


def test_the_pages_name_every_public_name():
    text = (ROOT / "README.md").read_text() + (ROOT / "docs/guide.md").read_text()
    classes = [name for name in warpfuse.__all__ if name[0].isupper() and not name.endswith(("Warning", "CV"))]
    assert [name for name in classes if f"`{name}" not in text and name not in text] == []


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="pictures need matplotlib")
def test_pictures_are_drawn(tmp_path):
    program = shutil.copy(ROOT / "docs/pictures.py", tmp_path)
    command = [sys.executable, "-W", "ignore", str(program)]
    end = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert end.returncode == 0, end.stderr
    drawn = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert drawn == sorted(path.name for path in (ROOT / "docs/pictures").iterdir())
