"""``python -m warpfuse script.py``: runs a script, or a module by ``-m``, with scikit-learn accelerated."""

import argparse
import runpy
import sys


def main(arguments: list[str] | None = None) -> None:
    """Accelerates scikit-learn, then runs what is named."""
    parser = argparse.ArgumentParser(
        prog="python -m warpfuse",
        description="Runs a Python program with scikit-learn's linear models replaced by warpfuse's.",
    )
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module instead of a file")
    parser.add_argument(
        "--fallback",
        choices=("silent", "warn", "error"),
        default="silent",
        help="what happens where scikit-learn has to fit (default: silent)",
    )
    parser.add_argument("--report", action="store_true", help="say at the end who fitted what, on stderr")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="a script and its arguments")
    given = parser.parse_args(arguments)
    if given.module is None and not given.program:
        parser.error("a script, or -m MODULE, is needed")
    from ._accelerate import accelerate

    accelerate(fallback=given.fallback)
    try:
        _run(given.module, given.program)
    finally:
        if given.report:
            _report()


def _run(module: str | None, program: list[str]) -> None:
    if module is not None:
        sys.argv = [module, *program]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return
    sys.argv = list(program)
    runpy.run_path(program[0], run_name="__main__")


def _report() -> None:
    from ._report import fits

    for name, counts in fits().items():
        print(f"warpfuse: {name}: {counts['served']} fits", file=sys.stderr)
        for reason, count in counts["fell_back"].items():
            print(f"warpfuse: {name}: {count} by scikit-learn: {reason}", file=sys.stderr)


if __name__ == "__main__":
    main()
