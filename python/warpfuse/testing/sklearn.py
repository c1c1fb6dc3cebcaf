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
        "--warpfuse-record",
        default=None,
        metavar="FILE",
        help="write what came of the run to this file, as a page in Markdown",
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


def pytest_sessionfinish(session: Any) -> None:
    """A worker of pytest-xdist hands its counts to the process that started it."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["warpfuse"] = _report.fits()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    _report.add(getattr(node, "workeroutput", {}).get("warpfuse", {}))


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    lines = [f"{count} {outcome}" for outcome, count in _outcomes(terminalreporter).items()]
    terminalreporter.section("warpfuse")
    for line in lines + _fits():
        terminalreporter.line(line)
    record = config.getoption("--warpfuse-record")
    if record is not None:
        Path(record).write_text(_record(terminalreporter))


def _outcomes(reporter: Any) -> dict[str, int]:
    names = ("passed", "failed", "error", "xfailed", "xpassed", "skipped")
    return {name: len(reporter.stats.get(name, [])) for name in names}


def _fits() -> list[str]:
    lines = []
    for name, counts in _report.fits().items():
        fell_back = sorted(counts["fell_back"].items(), key=lambda pair: -pair[1])
        lines.append(f"{name}: {counts['served']} fits served, {sum(n for _, n in fell_back)} fell back to scikit-learn")
        lines.extend(f"    {count:5d}  {reason}" for reason, count in fell_back)
    return lines


def _record(reporter: Any) -> str:
    """What came of a run, as a page."""
    from importlib.metadata import version

    outcomes = _outcomes(reporter)
    used = ", ".join(f"{name} {version(name)}" for name in ("scikit-learn", "numpy", "scipy"))
    lines = ["# scikit-learn's own tests, unchanged, against warpfuse", "", f"With {used}.", ""]
    lines += ["| outcome | tests |", "|---|---|", *(f"| {name} | {count} |" for name, count in outcomes.items()), ""]
    lines += ["| class | served by warpfuse | fallen back to scikit-learn |", "|---|---|---|"]
    for name, counts in _report.fits().items():
        lines.append(f"| {name} | {counts['served']} | {sum(counts['fell_back'].values())} |")
    lines += ["", "## Expected failures", ""]
    for report in reporter.stats.get("xfailed", []):
        lines.append(f"- `{report.nodeid.rpartition('/')[2]}`: {report.wasxfail}")
    lines += ["", "## Why fits fell back", "", *(f"    {line}" for line in _fits()), ""]
    return "\n".join(lines)
