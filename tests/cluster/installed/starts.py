"""What the start of each command costs: `python -m tests.cluster.installed.starts` prints the table of
docs/performance.md.

The help of a command imports what the command itself imports, and then does nothing.
"""

import resource
import subprocess
import sys
from statistics import median

from strandline.cli.commands import COMMANDS

ROUNDS = 5
OTHERS = {"(interpreter)": ["-c", "pass"], "--help": ["-m", "strandline", "--help"]}


def processor_ms(arguments: list[str]) -> float:
    """Of one process, in user and system mode."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def main() -> None:
    print("| command | processor time in ms |\n|---|---|")
    for name, arguments in (OTHERS | {name: ["-m", "strandline", name, "--help"] for name in COMMANDS}).items():
        processor_ms(arguments)  # compiles what has changed
        print(f"| `{name}` | {median(processor_ms(arguments) for _ in range(ROUNDS)):.0f} |", flush=True)


if __name__ == "__main__":
    main()
