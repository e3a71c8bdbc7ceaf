"""`strandline schema`: the JSON Schema of what a command prints with --json."""

import json

from strandline.cli.connect import fail
from strandline.cli.missing import spark
from strandline.cli.printed.schemas import printed, schema


def print_schema(*command: str) -> None:
    """Print the JSON Schema of what a command prints with --json. Without a command, list those that have one.

    Parameters
    ----------
    command
        the command in one or two words, such as topics describe
    """
    name, known = " ".join(command), printed()
    if not name:
        print("\n".join(known))
    elif name in known:
        print(json.dumps(schema(name), indent=2))
    elif "pipeline" in command and not any("pipeline" in one.split() for one in known):
        spark()
    else:
        fail(f"'{name}' is not a command with --json", "`strandline schema` lists them", status=2)
