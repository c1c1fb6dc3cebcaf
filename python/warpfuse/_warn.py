"""Warnings at the line of the caller's program, however deep in the package they arise."""

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """``warnings.warn`` at the innermost frame that is neither warpfuse's nor scikit-learn's wrapper of ``fit``."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_inner(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_inner(file: str) -> bool:
    return file.startswith(_PACKAGE) or file.endswith(("sklearn/base.py", "contextlib.py"))
