"""What is not installed, and the command that installs it."""

from typing import Annotated

from cyclopts import Parameter

from strandline.cli.connect import fail


def spark(*arguments: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)]) -> None:
    """This command is not installed: pip install 'strandline[spark]'."""
    fail("this command needs strandline-spark", "pip install 'strandline[spark]'")
