"""The last replica's story (KIP-966, "Motivation"): how it is played on a stage, step by step, and what was seen.

Every number is measured: what was acknowledged by producers, what is there by a consumer that reads it all, log ends
and what of them is durable by the files, leader and sets by the controller's log.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from strandline.base.value import Value
from strandline.client.admin.loss_ledger import Ledger, exactly_lost, missing_copies
from strandline.demo.last_replica.stage import BROKERS, Stage, durable_end, log_end, numbers_on
from strandline.diagnosis.loss_words import range_words

Say = Callable[[str], None]

LAST = 2  # the last replica standing

# What happens in each step, whoever may lead then. The last one is the reckoning.
HAPPENS = {
    "before": "Three brokers, all in sync. The records reach the disks.",
    "T0": "Broker 0 is cut off from the network. Writing goes on; these records are in page caches only.",
    "T1": "Broker 1 is cut off, too. Broker 2 is the last one in sync.",
    "T2": "Broker 2 loses power, and with it all that it had not written to its disk.",
    "T3": "The network heals: brokers 0 and 1 are back. Broker 2 is still without power.",
    "T4": "Broker 2 has power again.",
}


class Seen(Value, frozen=True):
    """One broker at the end of a step."""

    broker: int
    condition: str  # "up", "cut off", "no power"
    role: str  # "leader", "in sync", "eligible", "last known", "out of sync"
    log_end: int
    durable_end: int
    missing: int  # acknowledged records that are not in its files


class Moment(Value, frozen=True):
    """A step, and how it ended."""

    step: str
    at_s: float  # seconds after the first step
    brokers: tuple[Seen, ...]
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    high_watermark: int | None  # as consumers see it; None: no leader
    sent: int
    acknowledged: int
    committed: int  # acknowledged in all steps so far


class Story(Value, frozen=True):
    is_elr_on: bool
    moments: tuple[Moment, ...]
    acknowledged: int
    found: int  # of the acknowledged ones
    lost: int
    replaced: int  # offsets at which something else is read than what was acknowledged there
    first_lost: int | None  # its number
    last_lost: int | None
    ledger_lost: int  # how many records the loss ledger says are lost, exactly
    ledger_missing: int  # copies of single brokers that it says were missing, and were copied again
    ledger: tuple[str, ...]  # its entries, in words


def play(folder: Path, is_elr_on: bool, records: int, say: Say) -> Story:
    """The whole scenario on a cluster of its own; raises `StartFailed` where it goes another way than it must."""
    say("a controller and three brokers start")
    with Stage(folder) as stage:
        stage.set_elr(int(is_elr_on))
        stage.make_topic()
        story = Playing(stage, is_elr_on, records, say).story()
        stage.stop()
    return story


class Playing:
    def __init__(self, stage: Stage, is_elr_on: bool, records: int, say: Say) -> None:
        self.stage = stage
        self.is_elr_on = is_elr_on
        self.records = records
        self.say = say
        self.began = time.monotonic()
        self.acknowledged: list[tuple[int, int]] = []  # offset, number
        self.moments: list[Moment] = []

    def story(self) -> Story:
        for step, act in (
            ("before", self.before),
            ("T0", self.cut_first),
            ("T1", self.cut_second),
            ("T2", self.cut_power),
            ("T3", self.heal),
            ("T4", self.return_of_the_last),
        ):
            self.say(f"{step}: {HAPPENS[step]}" if step != "before" else HAPPENS[step])
            at_s = time.monotonic() - self.began
            self.moments.append(self.seen(step, at_s, *act()))
        self.say("a consumer reads everything that is there")
        found = self.stage.read()
        return judged(self.is_elr_on, self.moments, self.acknowledged, found, self.stage.ledger())

    def write(self, is_refused: bool = False) -> tuple[int, int]:
        acknowledged = self.stage.write(self.records, is_refused=is_refused)
        self.acknowledged += acknowledged.items()
        return self.records, len(acknowledged)

    # --- the steps: what was sent, and what of it was acknowledged

    def before(self) -> tuple[int, int]:
        written = self.write()
        self.stage.write_back()
        return written

    def cut_first(self) -> tuple[int, int]:
        self.stage.cut(0)
        self.stage.wait("broker 1 leads without broker 0", lambda p, _: p.isr == (1, 2) and p.leader == 1)
        return self.write()

    def cut_second(self) -> tuple[int, int]:
        self.stage.cut(1)
        self.stage.wait("broker 2 is the last in sync", lambda p, _: p.isr == (2,) and p.leader == 2)
        return self.write(is_refused=True)

    def cut_power(self) -> tuple[int, int]:
        self.stage.brokers[2].cut_power()
        self.stage.wait("nobody leads", lambda p, _: p.leader < 0)
        return 0, 0

    def heal(self) -> tuple[int, int]:
        self.stage.heal()
        self.stage.wait("brokers 0 and 1 are back", lambda _, image: image.is_active(0) and image.is_active(1))  # type: ignore[arg-type]  # plain numbers as ids
        if self.is_elr_on:
            self.stage.wait("both are in sync", lambda p, _: set(p.isr) == {0, 1} and p.leader in (0, 1))
        self.stage.wait_known()
        return self.write(is_refused=not self.is_elr_on)

    def return_of_the_last(self) -> tuple[int, int]:
        self.stage.brokers[2].start()
        self.stage.brokers[2].wait_listening()
        self.stage.wait("all three are in sync", lambda p, _: set(p.isr) == set(BROKERS) and p.leader >= 0)
        return self.write()

    # --- what is to be seen

    def seen(self, step: str, at_s: float, sent: int, acknowledged: int) -> Moment:
        stage = self.stage
        at = stage.partition(stage.image())
        wanted = {number for _, number in self.acknowledged}

        def role(n: int) -> str:
            sets = ((n == at.leader, "leader"), (n in at.isr, "in sync"), (n in at.elr, "eligible"))
            return next((name for is_so, name in sets if is_so), "out of sync")

        def condition(n: int) -> str:
            if not stage.brokers[n].running:
                return "no power"
            return "cut off" if n in stage.cut_off else "up"

        return Moment(
            step,
            round(at_s, 1),
            tuple(
                Seen(n, condition(n), role(n), log_end(broker), durable_end(broker), len(wanted - numbers_on(broker)))
                for n, broker in zip(BROKERS, stage.brokers, strict=True)
            ),
            at.leader,
            at.leader_epoch,
            at.isr,
            at.elr,
            stage.high_watermark(),
            sent,
            acknowledged,
            len(self.acknowledged),
        )


def judged(
    is_elr_on: bool,
    moments: Sequence[Moment],
    acknowledged: Sequence[tuple[int, int]],
    found: Mapping[int, int],
    ledger: Ledger,
) -> Story:
    """What was acknowledged (offset, number), held against what a consumer found there (offset → number)."""
    there = set(found.values())
    lost = [number for _, number in acknowledged if number not in there]
    return Story(
        is_elr_on,
        tuple(moments),
        acknowledged=len(acknowledged),
        found=len(acknowledged) - len(lost),
        lost=len(lost),
        replaced=sum(found.get(offset, number) != number for offset, number in acknowledged),
        first_lost=min(lost, default=None),
        last_lost=max(lost, default=None),
        ledger_lost=exactly_lost(ledger.losses),
        ledger_missing=missing_copies(ledger.losses),
        ledger=tuple(
            f"broker {loss.replica}: {range_words(loss.start, loss.end, loss.certainty)}: {loss.cause}"
            for loss in ledger.losses
        ),
    )


def remark(story: Story, step: str) -> str:
    """What the step means, in this story. Nothing is claimed that was not seen."""
    at = next(moment for moment in story.moments if moment.step == step)
    isr, elr = names(at.isr), names(at.elr)
    match step:
        case "before":
            return f"{at.acknowledged:,} records are acknowledged, and on all three disks."
        case "T0":
            return f"In sync: {isr}, as many as min ISR requires. {at.acknowledged:,} more records are acknowledged."
        case "T1" if story.is_elr_on:
            return (
                f"Below min ISR nothing is committed, so broker {elr} still has everything that was committed:"
                " it is eligible."
                f" {at.sent - at.acknowledged:,} records are rejected."
            )
        case "T1":
            return (
                f"In sync: {isr}. No record says which other replicas have everything."
                f" {at.sent - at.acknowledged:,} records are rejected."
            )
        case "T2" if story.is_elr_on:
            return f"The ISR may be empty: eligible are {elr}. The first broker that returns with its data will lead."
        case "T2":
            return f"The ISR keeps its last member, broker {isr}. Only it may lead again, with what is left of its log."
        case "T3" if story.is_elr_on:
            return (
                f"Broker {at.leader} was eligible and leads: nothing is missing."
                f" {at.acknowledged:,} more records are acknowledged."
            )
        case "T3":
            return (
                "All records are there, on broker 1, but it is not in the ISR: nobody leads."
                f" {at.sent - at.acknowledged:,} records are rejected."
            )
        case "T4" if at.leader == LAST:
            return (
                f"Broker {LAST} leads with what is left. The others cut their logs to be like it."
                f" {story.replaced:,} offsets that were acknowledged hold other records now."
            )
    return f"Broker {LAST} stopped uncleanly, so it must follow: it gets what it lost from broker {at.leader}."


def ledger_words(story: Story) -> str:
    if not story.ledger:
        return "The loss ledger is empty."
    parts = [f"exactly {story.ledger_lost:,} records lost"]
    if story.ledger_missing:
        missing = f"{story.ledger_missing:,} that broker {LAST} missed"
        parts.append(missing if story.lost else f"{missing}, and got again")
    return f"The loss ledger says: {'; '.join(parts)}."


def names(brokers: Sequence[int]) -> str:
    return " and ".join(map(str, brokers)) or "nobody"
