"""`strandline groups`: which groups there are, who is in them, how far they are; and changes of their offsets.

The words are those of kafka-consumer-groups. Commands that change something show a plan first, and act with --execute.
"""

import sys

from cyclopts import App

GROUPS = "strandline.cli.groups"
COMMANDS = {
    "list": ("listing:list_all", "List the groups of all coordinators."),
    "describe": ("describing:describe", "Show a group's coordinator and state."),
    "members": ("members:members", "Show who is in a group, and what each member reads."),
    "lag": ("lag:lag", "Show how far a group is behind."),
    "reset-offsets": ("reset_offsets:reset_offsets", "Plan where a group goes on, and reset it there."),
    "delete-offsets": ("delete_offsets:delete_offsets", "Plan and delete offsets of topics that nobody reads."),
    "delete": ("deleting:delete", "Plan and delete groups without members."),
}
app = App(name="groups", help="Show groups, their members and their lag; reset and delete offsets.")
for name, (path, summary) in COMMANDS.items():
    app.command(f"{GROUPS}.{path}", name=name, help=None if name in sys.argv[2:3] else summary)
