"""One step of a member towards the target assignment, as a table (KIP-848)."""

from msgspec.structs import replace
from tests.rows import each

from strandline.base.ids import Uuid
from strandline.group.consumer.member import Held, Member, MemberState, Partitions
from strandline.group.consumer.reconciling import reconciled

T, U = Uuid(b"t" * 16), Uuid(b"u" * 16)
TOPICS = {"t": T, "u": U}
STABLE, UNREVOKED, UNRELEASED = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS
TARGET_EPOCH = 5


def held(text: str) -> Held:
    """`t0@2` is partition 0 of t, since epoch 2."""
    found: dict[Uuid, dict[int, int]] = {}
    for part in text.split():
        at, epoch = part.split("@")
        found.setdefault(TOPICS[at[0]], {})[int(at[1:])] = int(epoch)
    return found


def partitions(text: str) -> Partitions:
    found: dict[Uuid, frozenset[int]] = {}
    for part in text.split():
        topic_id = TOPICS[part[0]]
        found[topic_id] = found.get(topic_id, frozenset()) | {int(part[1:])}
    return found


ROWS = [
    # state, epoch, assigned, revoking | target, owned ("?": not reported), owners of others
    # → state, epoch, assigned, revoking
    ("there is nothing to do", STABLE, 5, "t0@2", "", "t0", "?", "", STABLE, 5, "t0@2", ""),
    ("it gets what is free", STABLE, 4, "t0@2", "", "t0 t1", "?", "", STABLE, 5, "t0@2 t1@5", ""),
    ("it waits for another", STABLE, 4, "t0@2", "", "t0 t1", "?", "t1", UNRELEASED, 5, "t0@2", ""),
    ("it gets a part, and waits", STABLE, 4, "", "", "t0 u1", "?", "u1", UNRELEASED, 5, "t0@5", ""),
    ("it gets what was released", UNRELEASED, 5, "t0@2", "", "t0 t1", "?", "", STABLE, 5, "t0@2 t1@5", ""),
    ("it goes on to a newer target", UNRELEASED, 4, "t0@2", "", "t0", "?", "", STABLE, 5, "t0@2", ""),
    ("it must give back first", STABLE, 4, "t0@2 t1@2", "", "t1 u0", "t0 t1", "", UNREVOKED, 4, "t1@2", "t0@2"),
    ("it does not report", STABLE, 4, "t0@2 t1@2", "", "t1", "?", "", UNREVOKED, 4, "t1@2", "t0@2"),
    ("it has given it up already", STABLE, 4, "t0@2 t1@2", "", "t1", "t1", "", STABLE, 5, "t1@2", ""),
    ("it has not given it back", UNREVOKED, 4, "t1@2", "t0@2", "t1", "t0 t1", "", UNREVOKED, 4, "t1@2", "t0@2"),
    ("it still does not report", UNREVOKED, 4, "t1@2", "t0@2", "t1", "?", "", UNREVOKED, 4, "t1@2", "t0@2"),
    ("it has given it back", UNREVOKED, 4, "t1@2", "t0@2", "t1 u0", "t1", "", STABLE, 5, "t1@2 u0@5", ""),
    ("and must give back more", UNREVOKED, 4, "t1@2", "t0@2", "u0", "t1", "", UNREVOKED, 4, "", "t1@2"),
    ("it gets back what it gave", UNREVOKED, 4, "t1@2", "t0@2", "t0 t1", "t1", "", STABLE, 5, "t1@2 t0@5", ""),
    ("all of it", STABLE, 4, "t0@2", "", "", "", "", STABLE, 5, "", ""),
]


@each(
    ("state", "epoch", "assigned", "revoking", "target", "owned", "of_others", *("then", "at", "has", "gives")),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_a_step(
    state: MemberState,
    epoch: int,
    assigned: str,
    revoking: str,
    target: str,
    owned: str,
    of_others: str,
    then: MemberState,
    at: int,
    has: str,
    gives: str,
) -> None:
    member = Member("m", epoch=epoch, previous_epoch=3, state=state, assigned=held(assigned), revoking=held(revoking))
    owners = {(topic_id, p): "other" for topic_id, them in partitions(of_others).items() for p in them}
    owners |= {(topic_id, p): "m" for part in (assigned, revoking) for topic_id, ps in held(part).items() for p in ps}
    reported = None if owned == "?" else partitions(owned)
    found = reconciled(
        member, TARGET_EPOCH, partitions(target), lambda t, p: owners.get((t, p)), reported, frozenset({T, U})
    )
    assert (found.state, found.epoch, found.assigned, found.revoking) == (then, at, held(has), held(gives))
    assert found.previous_epoch in (epoch, 3)
    assert (found.previous_epoch == 3) == (found == member), "the epoch before is that of the last change"


def test_a_target_beyond_the_subscription_does_not_count() -> None:
    member = Member("m", epoch=4, assigned=held("t0@2 u0@2"))
    found = reconciled(member, 5, partitions("t0 t1 u0 u1"), lambda t, p: None, None, frozenset({T}))
    assert (found.assigned, found.revoking, found.state) == (held("t0@2"), held("u0@2"), UNREVOKED)
    waits = replace(member, state=UNREVOKED, assigned=held("t0@2 u0@2"), revoking=held("t3@1 u3@1"))
    found = reconciled(waits, 5, partitions("t0 u0"), lambda t, p: None, None, frozenset({T}))
    assert (found.assigned, found.revoking) == (held("t0@2"), held("t3@1 u3@1 u0@2"))
