"""The command line program ``warpfuse``."""

import signal
import sys

from . import _native


def main() -> int:
    """Runs it on this process's arguments."""
    # Ctrl-C ends a command at once, as of every other program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.run_command_line(["warpfuse", *sys.argv[1:]])
