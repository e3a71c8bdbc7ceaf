"""docs/states.md, made from the tables of transitions: `python tests/tidy/states_page.py` writes it anew."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from strandline.group.classic import group as classic
from strandline.quorum import roles
from strandline.txn import states as txn_states

PAGE = Path(__file__).parents[2] / "docs" / "states.md"
HEAD = """# Roles and states

This page is made from the tables of transitions in `quorum/roles.py`, `group/classic/group.py` and `txn/states.py`, by
`python tests/tidy/states_page.py`; a test holds it against them. The machines assert at run time that they do nothing
that is not in their table. Where a role is followed by itself, it begins anew.

## The roles of a node in the metadata quorum

What each transition is caused by is in `quorum/state.py`.
"""
GROUPS = """## The states of a consumer group

The changes are in `group/classic/group.py`.
"""
TRANSACTIONS = """## The states of a transactional id

The changes are in `txn/transaction.py`; [transactions.md](transactions.md) explains them. A record that is committed
is what makes a change: until then the id is in the state before.
"""


def page() -> str:
    named = {role.__name__: [after.__name__ for after in then] for role, then in roles.TRANSITIONS.items()}
    states = {state.value: [after.value for after in then] for state, then in classic.TRANSITIONS.items()}
    parts = [HEAD, diagram(named), "| Role | |\n|---|---|"]
    parts += [f"| {role.__name__} | {line(role)} |" for role in roles.TRANSITIONS]
    return "\n".join([*parts, "", GROUPS, diagram(states), TRANSACTIONS, *transactions()])


def transactions() -> Iterator[str]:
    table = {state.named: then for state, then in txn_states.TRANSITIONS.items()}
    yield diagram({state: [after.named for after in then] for state, then in table.items()})
    yield "| From | To | Cause |\n|---|---|---|"
    for state, then in table.items():
        yield from (f"| {state} | {after.named} | {why} |" for after, why in then.items())
    yield ""


def diagram(transitions: dict[str, list[str]]) -> str:
    return "\n".join(["```mermaid", "stateDiagram-v2", *arrows(transitions.items()), "```", ""])


def arrows(transitions: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    for state, then in transitions:
        yield from (f"    {state} --> {after}" for after in then)


def line(role: type) -> str:
    assert role.__doc__, f"{role.__name__} says what it is"
    return " ".join(role.__doc__.split())


if __name__ == "__main__":
    PAGE.write_text(page())
