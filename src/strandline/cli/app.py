"""The list of commands, given to the command-line library. Each is imported when it runs, so that it starts fast
whatever the others need."""

import sys

from cyclopts import App

from strandline.base import VERSION
from strandline.cli.commands import COMMANDS, HELP, PIPELINE, PLUGINS, plugins


def command(app: App, name: str, path: str, summary: str) -> None:
    """The summary is for lists. Given to a command that is asked for, it would take the place of the command's text."""
    app.command(path, name=name, help=None if name in sys.argv[1:3] else summary)


def add_plugins(app: App, group: str, summary: str) -> None:
    """Commands of other distributions, by their entry points; `summary` is that of `pipeline`."""
    for name, path in plugins(group).items():
        command(app, name, path, summary if name == "pipeline" else "")


app = App(name="strandline", version=VERSION, help=HELP)
for name, (path, summary) in COMMANDS.items():
    command(app, name, path, summary)
if sys.argv[1:2] == [] or sys.argv[1] not in COMMANDS:  # finding what is installed takes a while
    add_plugins(app, PLUGINS, PIPELINE)
