"""Shell commands that the user of a bench names: they kill a node, or drop the page cache."""

import subprocess


class CommandFailed(Exception):
    """The message is what the command printed as its error, or its exit status."""


def run(command: str) -> None:
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandFailed(done.stderr.strip() or f"exit status {done.returncode}")
