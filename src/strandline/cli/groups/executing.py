"""What commands that change groups have in common: the plan is shown first, and done with --execute."""

import sys
from typing import Annotated

from cyclopts import Parameter

from strandline.cli.connect import misuse

REPEAT = "`strandline groups describe` shows who is in a group; repeat the command when nobody is"
Execute = Annotated[bool, Parameter(negative="", help="do it; without this the plan is shown, and nothing changes")]
DryRun = Annotated[bool, Parameter(negative="", help="show the plan, which is the default")]


def check_one(execute: bool, dry_run: bool) -> None:
    """Ends the command if both are asked for."""
    if execute and dry_run:
        misuse("--execute and --dry-run exclude each other", "without --execute nothing is changed")


def warn(problem: str, advice: str) -> None:
    print(f"warning: {problem}\n  {advice}", file=sys.stderr)


def show_unchanged() -> None:
    print("nothing was changed: repeat the command with --execute", file=sys.stderr)
