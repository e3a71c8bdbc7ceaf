"""The command line within the test's own process: a process of its own for each command costs half a second of imports.

What a process is needed for, signals, pipes and terminals, has tests with processes.
"""

import io
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

from tests.printed import hold

from strandline.cli.main import run


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def strandline(*arguments: str, stdin: str = "") -> Done:
    """`strandline ARGUMENTS`, to its end, with this to read."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    status: object = 0
    lines = io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8")
    with (
        patch.multiple(sys, argv=["strandline", *arguments], stdin=lines),
        warnings.catch_warnings(action="ignore"),  # outside of tests they would not end a command
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            run()
        except SystemExit as end:
            status = end.code
    said = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    hold(arguments, said[0])
    return Done(status if isinstance(status, int) else int(status is not None), *said)
