"""The cells of the notebooks run, on a few rows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["clicks", "counts", "text"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_run(path):
    cells = json.loads(path.read_text())["cells"]
    program = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    environment = {**os.environ, "WARPFUSE_NOTEBOOK_ROWS": "1000", "WARPFUSE_DEVICE": "cpu"}
    command = [sys.executable, "-W", "ignore", "-c", program]
    end = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert end.returncode == 0, end.stderr
    assert end.stdout
