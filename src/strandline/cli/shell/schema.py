"""`strandline schema`: the JSON Schema of what a command prints with --json."""

import json

from strandline.cli.connect import fail
from strandline.cli.printed.schemas import PRINTED, schema


def print_schema(*command: str) -> None:
    """Print the JSON Schema of what a command prints with --json. Without a command, list those that have one.

    Parameters
    ----------
    command
        the command in one or two words, such as topics describe
    """
    name = " ".join(command)
    if not name:
        print("\n".join(PRINTED))
    elif name in PRINTED:
        print(json.dumps(schema(name), indent=2))
    else:
        fail(f"'{name}' is not a command with --json", "`strandline schema` lists them", status=2)
