"""An election by hand, with the code of `strandline leader-election`: a plan, the election, and what came of it."""

from typing import Literal

from msgspec import Struct

from strandline.client.admin.partitions import Place
from strandline.client.errors import BadOption
from strandline.console.facts import Observed
from strandline.console.table import Json
from strandline.console.view import Change, Int32
from strandline.diagnosis import electing, election_plan
from strandline.diagnosis.election_plan import ElectionResult, Kind, Plan, headline, lines_of

Type = Literal["preferred", "unclean", "designation", "longest_log_balanced", "longest_log_aggressive"]


class Election(Struct, frozen=True, forbid_unknown_fields=True):
    """Of one partition. `planned`: the broker that the plan named, as the operator has confirmed it."""

    topic: str
    partition: Int32
    type: Type
    designated_leader: Int32 = -1
    planned: int = -1

    @property
    def at(self) -> Place:
        return Place(self.topic, self.partition)

    @property
    def kind(self) -> Kind:
        return Kind[self.type.upper()]


def checked(wanted: Election) -> Election:
    """Raises BadOption."""
    if (wanted.kind is Kind.DESIGNATION) != (wanted.designated_leader >= 0):
        raise BadOption("a designation names its leader, and no other election does")
    return wanted


def plan_of(observed: Observed, wanted: Election) -> Plan:
    (plan,) = electing.plans_of(observed.config, wanted.kind, {wanted.at: wanted.designated_leader})
    return plan


def plan(observed: Observed, wanted: Election) -> Json:
    """What the election would do and lose, in the words of the command."""
    checked(wanted)
    if wanted.kind is Kind.PREFERRED:
        return {"lines": ["The first replica will lead, if it is in sync. Nothing is lost."], "lost": [], "planned": -1}
    found = plan_of(observed, wanted)
    return {
        **election_plan.as_json(found),
        "headline": headline(found),
        "lines": lines_of(found),
        "lost": election_plan.losses_of(found),
        "planned": found.candidate.node,
        "is_needed": found.candidate.outcome not in (ElectionResult.NOT_NEEDED, ElectionResult.NOBODY),
    }


def elect(observed: Observed, wanted: Election) -> Json:
    """What came of it, and what the loss ledger says. Refused if another broker would lead than was confirmed."""
    checked(wanted)
    due: dict[Place, Plan] = {}
    if wanted.kind is not Kind.PREFERRED:
        found = plan_of(observed, wanted)
        if found.candidate.node != wanted.planned:
            raise BadOption(
                f"the plan has changed: {headline(found)}", "look at the new plan, and confirm that if you want it"
            )
        if found.candidate.outcome is ElectionResult.NOT_NEEDED:
            return {"lines": lines_of(found), **electing.as_json({}, {}, {})}
        due = {found.at: found}
    results = electing.elect(observed.config, wanted.kind, {wanted.at: wanted.designated_leader})
    elected = [at for at, why in results.items() if why is None]
    seen = electing.seen_after(observed.config, elected, due) if due else {}
    lines = [
        line
        for at, wrong in results.items()
        for line in (
            [f"{at}: {wrong}"] if wrong else electing.outcome_lines(at, wrong is None, seen.get(at), due.get(at))
        )
    ]
    return {"lines": lines, **electing.as_json(results, due, seen)}


ELECTION = Change(Election, plan, elect)
