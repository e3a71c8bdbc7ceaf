"""A model explored with a planted bug."""

import subprocess
import sys

PROGRAM = """
from tests.planted import install
install({name!r})
from {model} import Setup, explore
print(*explore({setup}).counterexample or ["nothing was noticed"], sep="\\n")
"""


def verdict(model: str, name: str, setup: object) -> tuple[list[str], str]:
    """The last line of what is found, and all of it. In a process of its own: a module is changed before it is
    imported."""
    program = PROGRAM.format(model=model, name=name, setup=setup)
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    return done.stdout.splitlines()[-1:], done.stdout + done.stderr
