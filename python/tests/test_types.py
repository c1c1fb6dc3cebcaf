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


def test_the_stub_is_that_of_the_compiled_module(tmp_path, monkeypatch):
    pytest.importorskip("mypy")
    # Lists of names that PyO3 makes are none of the module's.
    (tmp_path / "allowed").write_text(r"warpfuse\._native\.__all__" + "\n")
    monkeypatch.setenv("MYPY_CACHE_DIR", str(tmp_path / "cache"))
    command = [sys.executable, "-P", "-m", "mypy.stubtest", "warpfuse._native", "--allowlist", str(tmp_path / "allowed")]
    command += ["--mypy-config-file", "pyproject.toml"]
    end = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=ROOT)
    assert end.returncode == 0, end.stdout + end.stderr
