"""Scripts as tests: commands in, transcript out. `--rewrite` records what the code does today; read the diff as prose.

A script is a sequence of blocks with an empty line between them. A block is: notes (`# …`), one command
(`verb key=value …`), `----`, and what the command showed.
"""

import re
from collections.abc import Callable
from pathlib import Path

Perform = Callable[[str, dict[str, str]], str]  # (verb, arguments) -> what it showed


def run(path: Path, perform: Perform, rewrite: bool) -> None:
    blocks = re.split(r"\n{2,}", path.read_text().strip("\n"))
    fresh = [replay(block, perform) for block in blocks]
    if rewrite:
        path.write_text("\n\n".join(fresh) + "\n")
    else:
        assert fresh == blocks, f"{path}: transcript changed; read the diff, then --rewrite"


def replay(block: str, perform: Perform) -> str:
    lines = block.splitlines()
    notes = [line for line in lines if line.startswith("#")]
    commands = lines[len(notes) : lines.index("----") if "----" in lines else len(lines)]
    if not commands:
        return block
    (command,) = commands
    verb, *words = command.split()
    arguments = dict(word.split("=", 1) for word in words)
    return "\n".join([*notes, command, "----", perform(verb, arguments).rstrip("\n") or "ok"])
