"""`kappa` as a process: it handles Ctrl-C before it imports the command line, and ignores it after the command ends."""

from __future__ import annotations

import gc
import signal
import sys

from assets import interrupts

# Python looks for garbage after 700 objects, which in a run is a tenth of its time.
_OBJECTS = 50_000


def main() -> int:
    """Run this process's command line; return the exit code."""
    interrupts.take_over()
    gc.set_threshold(_OBJECTS, 20, 20)
    try:
        from assets.commands import cli  # noqa: PLC0415 - an import may be interrupted too

        code = cli.main()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # The interpreter looks for garbage once more before it ends, in all that a run has imported.
        gc.freeze()
    except KeyboardInterrupt:
        interrupts.leave()
    if interrupts.has_come():
        interrupts.leave()
    return code


if __name__ == "__main__":
    sys.exit(main())
