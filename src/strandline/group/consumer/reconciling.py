"""The next state of a member on its way from what it has to what the target assignment gives it (KIP-848).

Rules:
  - partitions that the member loses are revoked first: it keeps its epoch, and gets nothing, until it no longer reports
    that it owns them
  - then it is moved to the epoch of the target assignment, with those of its partitions that no other member owns
  - it waits for the others, and gets each when its owner has given it back
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from strandline.base.ids import Uuid
from strandline.group.consumer.member import Held, Member, MemberState, Partitions, pairs

OwnerOf = Callable[[Uuid, int], str | None]


def reconciled(
    member: Member,
    target_epoch: int,
    target: Partitions,
    owner_of: OwnerOf,
    owned: Partitions | None,
    subscribed: frozenset[Uuid],
) -> Member:
    """`owned`: what the member reports that it owns; None: it did not report. `subscribed`: the topics of its present
    subscription. The target assignment may be older than that; what is in it beyond the subscription does not count."""
    assert target_epoch >= 0
    if member.is_reconciled_to(target_epoch):
        return member
    # guard: revoking-member-moved-on
    if member.state is MemberState.UNREVOKED_PARTITIONS and owns_any(owned, member.revoking):
        return revoking_unsubscribed(member, subscribed)
    wanted = {topic_id: them for topic_id, them in target.items() if topic_id in subscribed}
    return towards(member, target_epoch, wanted, owner_of, owned)


def towards(
    member: Member, target_epoch: int, target: Partitions, owner_of: OwnerOf, owned: Partitions | None
) -> Member:
    kept, lost = parted(member.assigned, lambda topic_id, p: p in target.get(topic_id, ()))
    if lost and owns_any(owned, lost):  # guard: revoked-before-it-is-reported
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_epoch=member.epoch,
            assigned=kept,
            revoking=lost,
        )
    assigned = {topic_id: dict(them) for topic_id, them in kept.items()}
    must_wait = False
    for topic_id, partition in pairs(target):
        if partition in kept.get(topic_id, ()):
            continue
        if owner_of(topic_id, partition) in (None, member.member_id):  # guard: partition-given-before-it-is-released
            assigned.setdefault(topic_id, {})[partition] = target_epoch
        else:
            must_wait = True
    assert all(assigned.values()), "no topic without partitions"
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if must_wait else MemberState.STABLE,
        epoch=target_epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        revoking={},
    )


def revoking_unsubscribed(member: Member, subscribed: frozenset[Uuid]) -> Member:
    """It still has what it must give back. If it has changed its subscription meanwhile, there is more of that."""
    kept, lost = parted(member.assigned, lambda topic_id, _: topic_id in subscribed)
    assert member.state is MemberState.UNREVOKED_PARTITIONS
    if not lost:
        return member
    revoking: dict[Uuid, Mapping[int, int]] = dict(member.revoking)
    for topic_id, them in lost.items():
        revoking[topic_id] = {**revoking.get(topic_id, {}), **them}
    return replace(member, previous_epoch=member.epoch, assigned=kept, revoking=revoking)


def owns_any(owned: Partitions | None, held: Held) -> bool:
    """A member that does not report what it owns may own all of it."""
    # guard: silence-taken-for-a-report
    return owned is None or any(not them.isdisjoint(held.get(topic_id, ())) for topic_id, them in owned.items())


def parted(held: Held, is_kept: Callable[[Uuid, int], bool]) -> tuple[Held, Held]:
    kept: dict[Uuid, dict[int, int]] = {}
    lost: dict[Uuid, dict[int, int]] = {}
    for topic_id, them in held.items():
        for partition, epoch in them.items():
            (kept if is_kept(topic_id, partition) else lost).setdefault(topic_id, {})[partition] = epoch
    return kept, lost
