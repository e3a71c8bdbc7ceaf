"""The page of roles and states is what the tables of transitions say, and these know every role and every state."""

from typing import get_args

from tests.tidy.states_page import PAGE, page

from strandline.group.classic import group as classic
from strandline.quorum import roles


def test_the_page_is_what_the_tables_say() -> None:
    assert PAGE.read_text() == page(), "write it anew: python tests/tidy/states_page.py"


def test_every_role_and_every_state_has_a_row_and_can_be_reached() -> None:
    for table, known in ((roles.TRANSITIONS, get_args(roles.Role)), (classic.TRANSITIONS, tuple(classic.State))):
        assert set(table) == set(known)
        # A node begins Unattached, Voted or Seeking; a group Empty, or Stable where its record has members.
        assert {after for then in table.values() for after in then} == set(known)
