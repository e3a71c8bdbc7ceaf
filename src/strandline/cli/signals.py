"""How a command ends that has started other processes."""

import signal


def interrupted_by_signals() -> None:
    """SIGTERM is a KeyboardInterrupt as Ctrl-C is, also in the background of a shell: what was started is ended too."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
