"""The partition builder, one row per rule."""

import pytest
from msgspec.structs import replace
from tests.rows import each

from strandline.base.ids import NOBODY, LeaderEpoch, NodeId, PartitionEpoch, TopicIdPartition, Uuid
from strandline.controller.partition import Election, LastResort, Rules, Wish, plan_change
from strandline.metadata.image import NO_LEADER_CHANGE, RECOVERED, RECOVERING, Partition, check_partition, merged

AT = TopicIdPartition(Uuid(b"t" * 16), 3)


def ids(text: str) -> tuple[NodeId, ...]:
    return tuple(NodeId(int(part)) for part in text.split())


def partition(
    replicas: str = "1 2 3",
    isr: str = "1 2 3",
    leader: int = 1,
    adding: str = "",
    removing: str = "",
    elr: str = "",
    known: str = "",
    recovery: int = RECOVERED,
) -> Partition:
    return Partition(
        replicas=ids(replicas),
        directories=tuple(Uuid(bytes(16)) for _ in ids(replicas)),
        isr=ids(isr),
        leader=NodeId(leader),
        leader_epoch=LeaderEpoch(5),
        partition_epoch=PartitionEpoch(9),
        leader_recovery_state=recovery,
        adding_replicas=ids(adding),
        removing_replicas=ids(removing),
        elr=ids(elr),
        last_known_elr=ids(known),
    )


def rules(alive: str = "1 2 3 4", unclean: bool = False, min_isr: int = 2, elr: bool = False) -> Rules:
    resort = LastResort.ANYBODY if unclean else LastResort.NOBODY
    return Rules(lambda node, _: node in ids(alive), resort, min_isr, elr, 0)


def after(old: Partition, wish: Wish, in_force: Rules) -> Partition | None:
    change = plan_change(AT, old, wish, in_force)
    if change is None:
        return None
    assert (change.topic_id, change.partition_id) == AT
    new = merged(old, change)
    check_partition(new)
    assert plan_change(AT, new, Wish(isr=new.isr, election=wish.election), in_force) is None, "not yet settled"
    return new


UNCHANGED = [
    ("nothing is wished", partition(), Wish(), rules()),
    ("the ISR is wished as it is", partition(), Wish(isr=ids("1 2 3")), rules()),
    ("the ISR is wished in another order", partition(), Wish(isr=ids("3 1 2")), rules()),
    (
        "the last ISR member leaves a leaderless partition (T12)",
        partition(isr="1", leader=-1),
        Wish(isr=()),
        rules("2"),
    ),
    ("the preferred leader leads", partition(), Wish(election=Election.PREFERRED), rules()),
    ("the preferred leader is not in sync", partition(isr="2 3", leader=2), Wish(election=Election.PREFERRED), rules()),
    ("the preferred leader is dead", partition(leader=2), Wish(election=Election.PREFERRED), rules("2 3")),
    ("no replica in sync is alive, unclean is forbidden", partition(isr="1", leader=-1), Wish(), rules("2 3")),
    ("unclean is allowed but nobody is alive", partition(isr="1", leader=-1), Wish(), rules("", unclean=True)),
    ("ELR members are dead", partition(isr="", leader=-1, elr="1 2"), Wish(), rules("3", elr=True)),
    ("the ELR is in another order", partition(isr="1", elr="3 2"), Wish(), rules(elr=True, min_isr=3)),
    (
        "what was last known is in another order",
        partition(isr="", leader=-1, elr="1", known="3 2"),
        Wish(),
        rules("", elr=True),
    ),
]


@each(("title", "old", "wish", "in_force"), UNCHANGED, ids=[row[0] for row in UNCHANGED])
def test_nothing_is_emitted(title: str, old: Partition, wish: Wish, in_force: Rules) -> None:
    assert plan_change(AT, old, wish, in_force) is None


# title, old, wish, rules, (isr, leader, leader epoch, recovery state, elr, last known elr)
CHANGES = [
    (
        "a shrink opens no leader epoch (T17)",
        partition(),
        Wish(isr=ids("1 3")),
        rules(),
        ("1 3", 1, 5, RECOVERED, "", ""),
    ),
    (
        "an expansion keeps replica order",
        partition(isr="2", leader=2),
        Wish(isr=ids("2 1")),
        rules(),
        ("1 2", 2, 5, 0, "", ""),
    ),
    (
        "the leader leaves: first in replica order",
        partition(),
        Wish(isr=ids("3 2")),
        rules("2 3"),
        ("2 3", 2, 6, 0, "", ""),
    ),
    ("an unacceptable member is passed over", partition(), Wish(isr=ids("2 3")), rules("3"), ("2 3", 3, 6, 0, "", "")),
    ("the last member stays, leaderless", partition(isr="1"), Wish(isr=()), rules("2 3"), ("1", -1, 6, 0, "", "")),
    ("the last member is back", partition(isr="1", leader=-1), Wish(), rules("1"), ("1", 1, 6, 0, "", "")),
    (
        "unclean: any live replica, RECOVERING",
        partition(isr="1"),
        Wish(isr=()),
        rules("3", True),
        ("3", 3, 6, 1, "", ""),
    ),
    (
        "allowed but not needed: clean wins",
        partition(),
        Wish(isr=ids("2 3")),
        rules("2 3", True),
        ("2 3", 2, 6, 0, "", ""),
    ),
    (
        "preferred election",
        partition(leader=3),
        Wish(election=Election.PREFERRED),
        rules(),
        ("1 2 3", 1, 6, 0, "", ""),
    ),
    (
        "recovered",
        partition(isr="1", recovery=RECOVERING),
        Wish(isr=ids("1"), recovery_state=RECOVERED),
        rules(),
        ("1", 1, 5, 0, "", ""),
    ),
    (
        "clean election keeps RECOVERING",
        partition(recovery=1),
        Wish(isr=ids("2 3")),
        rules("2 3"),
        ("2 3", 2, 6, 1, "", ""),
    ),
    # --- with ELR (KIP-966)
    ("below min ISR: into the ELR", partition(isr="1 2"), Wish(isr=ids("1")), rules(elr=True), ("1", 1, 5, 0, "2", "")),
    ("at min ISR: no ELR", partition(), Wish(isr=ids("1 2")), rules(elr=True), ("1 2", 1, 5, 0, "", "")),
    ("the ISR may be empty", partition(isr="1", elr="2"), Wish(isr=()), rules("", elr=True), ("", -1, 6, 0, "1 2", "")),
    (
        "an ELR member is elected cleanly",
        partition(isr="", leader=-1, elr="1 2"),
        Wish(),
        rules("2", elr=True),
        ("2", 2, 6, 0, "1", ""),
    ),
    (
        "elected alone it is enough",
        partition(isr="", leader=-1, elr="1 2"),
        Wish(),
        rules("2", min_isr=1, elr=True),
        ("2", 2, 6, 0, "", ""),
    ),
    (
        "ISR large again: ELR is cleared",
        partition(isr="1", elr="2", known="3"),
        Wish(isr=ids("1 3")),
        rules(elr=True),
        ("1 3", 1, 5, 0, "", ""),
    ),
    (
        "lost tail leaves the ELR",
        partition(isr="1", elr="2"),
        Wish(lost_tail=ids("2")),
        rules("1", elr=True),
        ("1", 1, 5, 0, "", "2"),
    ),
    (
        "lost tail of the last member",
        partition(isr="1"),
        Wish(isr=(), lost_tail=ids("1")),
        rules("", elr=True),
        ("", -1, 6, 0, "", "1"),
    ),
    (
        "clean goes before unclean",
        partition(isr="", leader=-1, elr="3"),
        Wish(),
        rules("2 3", True, elr=True),
        ("3", 3, 6, 0, "", ""),
    ),
    (
        "unclean forgets the ELR",
        partition(isr="", leader=-1, elr="3", known="1"),
        Wish(),
        rules("2", True, elr=True),
        ("2", 2, 6, 1, "", ""),
    ),
]


@each(("title", "old", "wish", "in_force", "new"), CHANGES, ids=[row[0] for row in CHANGES])
def test_change(
    title: str, old: Partition, wish: Wish, in_force: Rules, new: tuple[str, int, int, int, str, str]
) -> None:
    got = after(old, wish, in_force)
    assert got is not None
    isr, leader, epoch, recovery, elr, known = new
    assert (got.isr, got.leader, got.leader_epoch, got.leader_recovery_state) == (ids(isr), leader, epoch, recovery)
    assert (got.elr, got.last_known_elr) == (ids(elr), ids(known))
    assert got.partition_epoch == old.partition_epoch + 1


def test_the_elr_is_not_rewritten_for_its_order_beside_another_change() -> None:
    """The ELR is a set, and so is what was last known."""
    old = partition(replicas="1 2 3 4", isr="1", elr="3 2", known="4")
    change = plan_change(AT, old, Wish(isr=ids("1"), recovery_state=RECOVERING), rules("1", elr=True, min_isr=3))
    assert change is not None
    assert (change.isr, change.eligible_leader_replicas, change.last_known_elr) == (None, None, None)


# --- the feature switched off: what was decided under it stays in the partition until its next change

SWITCHED_OFF = [
    (
        "the next change empties both sets, though the ISR stays too small",
        partition(isr="1 2", elr="3", known="4", replicas="1 2 3 4"),
        Wish(isr=ids("1")),
        rules(min_isr=3),
        ("1", 1, "", ""),
    ),
    (
        "a member of the ELR that joins the ISR is not in both",
        partition(isr="1", elr="2 3"),
        Wish(isr=ids("1 2")),
        rules(min_isr=3),
        ("1 2", 1, "", ""),
    ),
    (
        "without an ISR the ELR leads once more, and ends",
        partition(isr="", leader=-1, elr="2 3", known="1"),
        Wish(),
        rules("3", min_isr=3),
        ("3", 3, "", ""),
    ),
    (
        "without an ISR whoever loses its tail is no longer eligible",
        partition(isr="", leader=-1, elr="2 3"),
        Wish(lost_tail=ids("2")),
        rules("1"),
        ("", -1, "3", "2"),
    ),
]


@pytest.mark.parametrize(("title", "old", "wish", "in_force", "new"), SWITCHED_OFF, ids=[r[0] for r in SWITCHED_OFF])
def test_switched_off(title: str, old: Partition, wish: Wish, in_force: Rules, new: tuple[str, int, str, str]) -> None:
    got = after(old, wish, in_force)
    assert got is not None
    isr, leader, elr, known = new
    assert (got.isr, got.leader, got.elr, got.last_known_elr) == (ids(isr), leader, ids(elr), ids(known))


def test_switched_off_an_elr_waits_for_its_members_while_there_is_no_isr() -> None:
    """Others come back first: the clean candidates must not be forgotten for that."""
    old = partition(isr="", leader=-1, elr="2 3")
    assert plan_change(AT, old, Wish(), rules("1")) is None


def test_a_reassignment_completes_when_the_added_replica_is_in_sync() -> None:
    old = partition(replicas="1 2 3 4", isr="1 2 3", adding="4", removing="1")
    new = after(old, Wish(isr=ids("1 2 3 4")), rules())
    assert new is not None
    assert (new.replicas, new.isr, new.adding_replicas, new.removing_replicas) == (ids("2 3 4"), ids("2 3 4"), (), ())
    assert (new.leader, new.leader_epoch) == (2, 6)


@pytest.mark.parametrize(
    ("title", "adding", "removing", "isr"),
    [
        ("the last replica goes", "", "4", "1 2 3"),
        ("the first replica goes", "4", "1", "1 2 3 4"),
        ("one comes, none goes", "4", "", "1 2 3 4"),
    ],
)
def test_a_record_that_names_replicas_names_the_directory_of_each(
    title: str, adding: str, removing: str, isr: str
) -> None:
    """Kafka's readers skip a record that does not, and go on with the replicas that were."""
    old = partition(replicas="1 2 3 4", isr="1 2 3", adding=adding, removing=removing)
    old = replace(old, directories=tuple(Uuid(bytes([node] * 16)) for node in old.replicas))
    change = plan_change(AT, old, Wish(isr=ids(isr)), rules())
    assert change is not None, title
    if change.replicas is None:
        assert (removing, change.directories) == ("", None), "where they lie stays as it was"
    else:
        assert change.directories == tuple(Uuid(bytes([node] * 16)) for node in change.replicas)


def test_a_reassignment_that_keeps_the_leader_opens_a_leader_epoch_all_the_same() -> None:
    old = partition(replicas="1 2 3 4", isr="1 2 3", adding="4", removing="3")
    new = after(old, Wish(isr=ids("1 2 4")), rules())
    assert new is not None
    assert (new.leader, new.leader_epoch, new.replicas) == (1, 6, ids("1 2 4"))


@pytest.mark.parametrize(
    ("title", "isr", "min_isr"),
    [("an added replica is not in sync", "1 2 3", 2), ("too few would stay in sync (T40)", "1 4", 2)],
)
def test_a_reassignment_waits(title: str, isr: str, min_isr: int) -> None:
    old = partition(replicas="1 2 3 4", isr="1 2", adding="4", removing="1")
    new = after(old, Wish(isr=ids(isr)), rules(min_isr=min_isr))
    assert new is not None
    assert (new.replicas, new.adding_replicas, new.removing_replicas) == (ids("1 2 3 4"), ids("4"), ids("1"))


def test_a_reassignment_that_adds_replicas_ends_with_an_isr_that_is_large_enough_for_all_of_them() -> None:
    """Min ISR 3 counts as 2 while two replicas are there, and as 3 once there are three (T40)."""
    old = partition(replicas="1 2 3", isr="1 2", adding="3")
    thin = after(old, Wish(isr=ids("1 3")), rules(min_isr=3, elr=True))
    assert thin is not None
    assert (thin.replicas, thin.adding_replicas, thin.isr, thin.elr) == (ids("1 2 3"), ids("3"), ids("1 3"), ())
    whole = after(old, Wish(isr=ids("1 2 3")), rules(min_isr=3, elr=True))
    assert whole is not None
    assert (whole.adding_replicas, whole.isr, whole.elr) == ((), ids("1 2 3"), ())
    assert whole.leader_epoch == old.leader_epoch + 1, "the leader hears by the log that min ISR counts 3 now (L7)"
    as_before = after(old, Wish(isr=ids("1 2 3")), rules(min_isr=2, elr=True))
    assert as_before is not None
    assert (as_before.adding_replicas, as_before.leader_epoch) == ((), old.leader_epoch)


def test_a_partition_epoch_is_begun_for_itself() -> None:
    old = partition()
    new = after(old, Wish(renews_epoch=True), rules())
    assert new is not None
    assert (new.partition_epoch, new.leader_epoch) == (old.partition_epoch + 1, old.leader_epoch)
    assert (new.isr, new.leader, new.elr) == (old.isr, old.leader, old.elr)


def test_a_reassignment_that_drops_replicas_ends_with_an_isr_that_is_large_enough_for_those_left() -> None:
    old = partition(isr="1 2", removing="3")
    new = after(old, Wish(isr=ids("1 2")), rules(min_isr=3, elr=True))
    assert new is not None
    assert (new.replicas, new.isr, new.elr) == (ids("1 2"), ids("1 2"), ())
    waiting = partition(isr="1", removing="3", elr="2")
    assert after(waiting, Wish(), rules(min_isr=3, elr=True)) is None


def test_a_reassignment_does_not_end_in_an_unclean_election() -> None:
    """The last member leaves and stays in the ISR, so that the ISR looks as if it could carry the end."""
    old = partition(replicas="1 2 3 4", isr="4", leader=4, adding="4", removing="1")
    new = after(old, Wish(isr=()), rules("2 3", unclean=True, min_isr=1))
    assert new is not None
    assert (new.replicas, new.adding_replicas, new.removing_replicas) == (ids("1 2 3 4"), ids("4"), ids("1"))
    assert (new.leader, new.isr, new.leader_recovery_state) == (2, ids("2"), RECOVERING)


def test_a_reassignment_does_not_end_without_a_leader_but_ends_with_the_next_one() -> None:
    old = partition(replicas="1 2 3 4", isr="4", leader=4, adding="4", removing="1")
    leaderless = after(old, Wish(isr=()), rules("2 3", min_isr=1))
    assert leaderless is not None
    assert (leaderless.replicas, leaderless.leader, leaderless.isr) == (ids("1 2 3 4"), NOBODY, ids("4"))
    led = after(leaderless, Wish(), rules("2 3 4", min_isr=1))
    assert led is not None
    assert (led.replicas, led.adding_replicas, led.removing_replicas, led.leader) == (ids("2 3 4"), (), (), 4)


def test_a_dead_replica_is_never_elected_by_any_path() -> None:
    """T8: whatever the election, the predicate is asked."""
    for elr in (False, True):
        for election in Election:
            old = partition(isr="" if elr else "1", leader=-1, elr="1 2" if elr else "", known="3" if elr else "")
            change = plan_change(AT, old, Wish(election=election), rules("", unclean=True, elr=elr))
            assert change is None or change.leader in (NOBODY, NO_LEADER_CHANGE)
