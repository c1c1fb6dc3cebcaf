"""Every public name is documented with an example, and type checkers agree with what functions say they take and give."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import warpfuse

CLASSES = [name for name in warpfuse.__all__ if inspect.isclass(getattr(warpfuse, name))]
ROOT = Path(__file__).parents[1]


def own(of):
    """Public methods and properties whose code is the package's."""
    for name, value in inspect.getmembers_static(of):
        function = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if not name.startswith("_") and getattr(function, "__module__", "").startswith("warpfuse"):
            yield name, value


@pytest.mark.parametrize("name", [name for name in warpfuse.__all__ if name not in ("__version__", "FallbackWarning")])
def test_it_has_an_example(name):
    assert ">>>" in inspect.getdoc(getattr(warpfuse, name))


@pytest.mark.parametrize("name", CLASSES)
def test_its_methods_are_documented(name):
    assert [method for method, value in own(getattr(warpfuse, name)) if not inspect.getdoc(value)] == []


def test_a_type_checker_finds_nothing(tmp_path):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), str(Path(warpfuse.__file__).parent)]
    end = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=ROOT)
    assert end.returncode == 0, end.stdout + end.stderr
