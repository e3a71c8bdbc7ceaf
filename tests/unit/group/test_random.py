"""Members that join, sync, leave and vanish in any order: nobody waits for ever, and the log tells the truth."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.group.coordination import Coordination, commit_request

from strandline.base.errors import ErrorCode as E
from strandline.group.classic.group import State
from strandline.wire.messages.groups.delete_groups import DeleteGroupsRequest
from strandline.wire.messages.groups.leave_group import MemberIdentity

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            # Twice where a run would otherwise rarely get far.
            (
                *("join", "join", "rejoin", "static", "sync", "sync", "heartbeat", "leave", "commit", "written"),
                *("written", "failed", "wait", "delete"),
            )
        ),
        st.integers(0, 5),
    ),
    max_size=60,
)


def play(c: Coordination, step: str, choice: int) -> None:
    group = c.shard.groups.get("g")
    ids = ["nobody"] if group is None else [*group.members, *group.pending, "nobody"]
    member_id = ids[choice % len(ids)]
    generation = 0 if group is None else group.generation
    match step:
        case "join":
            c.join(version=4 if choice % 2 else 3, session=6000 + 1000 * choice, rebalance=1000 * choice)
        case "rejoin":
            c.join(member_id, protocols={"range": b"other"} if choice == 5 else None, rebalance=4000)
        case "static":
            c.join(group_instance_id=f"i{choice % 2}", rebalance=3000)
        case "sync":
            c.sync(member_id, generation, dict.fromkeys(ids, b"part"))
        case "heartbeat":
            c.heartbeat(member_id, generation)
        case "leave":
            c.leave(MemberIdentity(member_id=member_id))
        case "commit":
            c.send(commit_request(choice, member_id, generation), 9)
        case "written":
            c.commit()
        case "failed" if c.log.under_way:
            c.fail(E.NOT_ENOUGH_REPLICAS)
        case "delete":
            c.send(DeleteGroupsRequest(groups_names=("g",)))
        case "wait":
            c.wait(800 * choice + 1)


@settings(max_examples=300, deadline=None)
@given(STEPS, st.sampled_from([0, 3000]))
def test_every_request_is_answered_once_all_timeouts_have_passed(steps: list[tuple[str, int]], delay_ms: int) -> None:
    c = Coordination(delay_ms=delay_ms)
    for step, choice in steps:
        before = c.shard.groups["g"].generation if "g" in c.shard.groups else 0
        play(c, step, choice)
        assert "g" not in c.shard.groups or c.group.generation >= before
    for _ in range(4):  # a rebalance may need a write, whose end starts other timeouts
        c.commit()
        c.wait(120_000)
    c.commit()
    assert c.unanswered() == []
    there = c.reload()
    assert there.offsets == c.shard.offsets
    group = c.shard.groups.get("g")
    nothing_failed = all(step != "failed" for step, _ in steps)
    if nothing_failed and group is not None and group.state is State.EMPTY and group.generation > 0:
        assert there.groups["g"].generation == group.generation
        assert there.groups["g"].state is State.EMPTY
