"""A pytest plugin that runs scikit-learn's own test files, unchanged, against warpfuse.

::

    pytest -p warpfuse.testing.sklearn --pyargs sklearn.linear_model sklearn.svm

Classes are replaced before anything is collected. Tests that are known to fail, with reasons, are listed in
``expected.toml`` next to this file; one that passes although it is listed fails the run, unless the list says that it
may. The summary says how many fits warpfuse served and how many scikit-learn did.
"""

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from .. import _report
from .._accelerate import accelerate

_EXPECTED = Path(__file__).with_name("expected.toml")


def pytest_addoption(parser: Any) -> None:
    parser.addoption(
        "--warpfuse-only",
        action="append",
        default=None,
        metavar="CLASS",
        help="replace this class alone (may be given several times)",
    )
    parser.addoption(
        "--warpfuse-no-expected",
        action="store_true",
        help="show tests that are expected to fail as failures",
    )


def pytest_configure(config: Any) -> None:
    accelerate(only=config.getoption("--warpfuse-only"))


def expected_failures() -> dict[str, dict[str, Any]]:
    """Patterns of tests, ``file::name`` in the language of :mod:`fnmatch`, with the reason and strictness of each."""
    groups = tomllib.loads(_EXPECTED.read_text())["group"]
    how = [({"reason": group["reason"], "strict": group.get("strict", True)}, group["tests"]) for group in groups]
    return {test: marks for marks, tests in how for test in tests}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    if config.getoption("--warpfuse-no-expected"):
        return
    patterns = expected_failures()
    for item in items:
        name = _name(item)
        for pattern, marks in patterns.items():
            if fnmatchcase(name, pattern):
                item.add_marker(pytest.mark.xfail(**marks))
                break


def _name(item: Any) -> str:
    return f"{Path(str(item.fspath)).name}::{item.name}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.section("warpfuse")
    for name, counts in _report.fits().items():
        fallbacks = sum(counts["fell_back"].values())
        terminalreporter.line(f"{name}: {counts['served']} fits served, {fallbacks} fell back to scikit-learn")
        for reason, count in sorted(counts["fell_back"].items(), key=lambda pair: -pair[1]):
            terminalreporter.line(f"    {count:5d}  {reason}")
