"""The law about members of the classic protocol that a consumer group takes out: what was asked of them, and when."""

from tests.rows import each

from strandline.sim.laws.clients.consumers import Gone
from strandline.sim.laws.clients.promises import Heard

WHOM = ("g", "m")
GONE = Gone(offset=9, time=2000, member_id="m", instance_id=None, last=None, patience_ms=1000, session_ms=2500)


@each(
    ("must_join", "must_sync", "answered", "since", "is_late"),
    [
        ([], [], True, 0, False),  # nothing was asked of it, however long ago it has joined
        ([1001], [1001], True, 0, False),
        ([1000], [], True, 0, True),
        ([], [1000], True, 0, True),
        ([1000, 1900], [], True, 0, True),  # what came later does not give it more time
        ([], [], False, 1000, True),  # perhaps it has joined, and nobody knows what it was answered
        ([], [], False, 1001, False),
    ],
)
def test_a_classic_member_may_be_taken_out_that_has_not_done_in_time_what_it_was_asked(
    must_join: list[int], must_sync: list[int], answered: bool, since: int, is_late: bool
) -> None:
    heard = Heard()
    heard.must_join[WHOM] = must_join
    heard.must_sync[WHOM] = must_sync
    if answered:
        heard.members[WHOM] = 1500
    assert heard.is_late(WHOM, GONE, since) is is_late
