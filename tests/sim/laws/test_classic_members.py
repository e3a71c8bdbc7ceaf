"""The laws about members of the classic protocol in a consumer group: when they may be taken out, and when they must be
told to join again."""

from tests.rows import each

from strandline.base.ids import Uuid
from strandline.sim.laws.clients.consumers import UNREVOKED, Consumers, Gone
from strandline.sim.laws.clients.promises import Heard
from strandline.wire.messages.consumer_groups import records as r

WHOM = ("g", "m")
GONE = Gone(offset=9, time=2000, member_id="m", instance_id=None, last=None, patience_ms=1000, session_ms=2500)
THERE, GONE_TOPIC = Uuid(b"t" * 16), Uuid(b"x" * 16)
STABLE = 0
Held = r.ConsumerGroupCurrentMemberAssignmentValue


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


def holds(*partitions: int, state: int = STABLE, revoking: tuple[int, ...] = ()) -> Held:
    return Held(
        member_epoch=3,
        state=state,
        assigned_partitions=(r.CurrentTopicPartitions(topic_id=THERE, partitions=partitions),),
        partitions_pending_revocation=(r.CurrentTopicPartitions(topic_id=THERE, partitions=revoking),),
    )


@each(
    ("mine", "others", "epoch", "topic", "why"),
    [
        (holds(0, 1), holds(), 3, THERE, None),
        (holds(0), holds(), 3, THERE, "which lacks"),
        (holds(0), holds(1), 3, THERE, None),  # it waits
        (holds(), holds(1), 3, THERE, None),  # for all at once
        (holds(0), holds(revoking=(1,)), 3, THERE, None),
        (holds(0), holds(), 3, GONE_TOPIC, None),
        (holds(0, 1), holds(), 4, THERE, "and the group is in epoch 4"),
        (holds(0, 1, state=UNREVOKED, revoking=(2,)), holds(), 3, THERE, "which must give back"),
    ],
)
def test_a_classic_member_is_told_to_join_if_it_could_have_what_it_is_to_have(
    mine: Held, others: Held, epoch: int, topic: Uuid, why: str | None
) -> None:
    group = Consumers("g")
    group.take(r.ConsumerGroupMetadataKey(group="g"), r.ConsumerGroupMetadataValue(epoch=epoch), 0, 0)
    target = r.ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=(r.TargetTopicPartition(topic_id=topic, partitions=(0, 1)),)
    )
    group.take(r.ConsumerGroupTargetAssignmentMemberKey(group="g", member_id="m"), target, 1, 0)
    for offset, (member_id, held) in enumerate((("m", mine), ("n", others)), 2):
        member = r.ConsumerGroupMemberMetadataKey(group="g", member_id=member_id)
        group.take(member, r.ConsumerGroupMemberMetadataValue(), offset, 0)
        group.take(r.ConsumerGroupCurrentMemberAssignmentKey(group="g", member_id=member_id), held, offset, 0)
    found = group.why_rejoin("m", {THERE})
    assert found is None if why is None else (found or "").startswith(why)
