"""`kappa` as a process: Ctrl-C is taken before the command line is imported, and after its end it changes nothing."""

from __future__ import annotations

import signal
import sys

from assets import interrupts


def main() -> int:
    """Run the command line of this process; return its exit code."""
    interrupts.take_over()
    try:
        from assets.commands import cli  # noqa: PLC0415 - an import may be interrupted too

        code = cli.main()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        interrupts.leave()
    if interrupts.has_come():
        interrupts.leave()
    return code


if __name__ == "__main__":
    sys.exit(main())
