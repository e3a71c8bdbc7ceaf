"""An election by the console: nothing is done but what was planned and confirmed."""

from typing import Any

import msgspec
import pytest

from strandline.client.admin.partitions import Place
from strandline.client.ask import config_of
from strandline.client.errors import BadOption
from strandline.console.changes.election import Election, elect, plan
from strandline.console.facts import Observed
from strandline.diagnosis import electing
from strandline.diagnosis.election_plan import Candidate, ElectionResult, Kind, Plan
from strandline.metadata.losses import loss_of

T0 = Place("t", 0)


def observed() -> Observed:
    return Observed(config_of("127.0.0.1:1"))


def planned(outcome: ElectionResult, node: int) -> Plan:
    loss = loss_of(node, last_led=1, old_epoch=2, evidence=None, time_ms=0, cause="designation")
    is_lossy = outcome is ElectionResult.UNCLEAN
    return Plan(T0, Kind.DESIGNATION, Candidate(outcome, node, "it was designated"), (), loss if is_lossy else None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the cluster is asked for; `plan` is what it would do."""
    seen: dict[str, Any] = {"plan": planned(ElectionResult.UNCLEAN, 3), "elected": []}

    def elected(_: Any, kind: Kind, wanted: Any) -> dict[Place, str | None]:
        seen["elected"].append((kind, wanted))
        return {T0: seen.get("why")}

    monkeypatch.setattr(electing, "plans_of", lambda _, kind, wanted: [seen["plan"]])
    monkeypatch.setattr(electing, "elect", elected)
    monkeypatch.setattr(electing, "seen_after", lambda *_: {})
    return seen


def designation(planned: int = 3) -> Election:
    return Election("t", 0, "designation", 3, planned)


def test_a_plan_elects_nobody_and_says_what_is_lost(asked: dict[str, Any]) -> None:
    found = plan(observed(), designation())
    assert (found["headline"], found["planned"]) == ("broker 3 would lead: it was designated", 3)
    assert found["is_needed"]
    assert found["lost"]
    assert asked["elected"] == []


def test_who_was_confirmed_is_elected(asked: dict[str, Any]) -> None:
    found = elect(observed(), designation())
    assert asked["elected"] == [(Kind.DESIGNATION, {T0: 3})]
    assert (found["lines"], found["results"][0]["outcome"]) == (["t-0: a leader was elected"], "elected")


def test_a_plan_that_has_changed_since_it_was_confirmed_is_not_done(asked: dict[str, Any]) -> None:
    for confirmed in (2, -1):
        with pytest.raises(BadOption, match="the plan has changed: broker 3 would lead"):
            elect(observed(), designation(confirmed))
    assert asked["elected"] == []


def test_a_partition_that_has_a_leader_keeps_it(asked: dict[str, Any]) -> None:
    asked["plan"] = planned(ElectionResult.NOT_NEEDED, 3)
    assert not plan(observed(), designation())["is_needed"]
    assert elect(observed(), designation())["lines"] == ["t-0: nothing to do, it was designated"]
    assert asked["elected"] == []


def test_a_refusal_of_the_cluster_is_shown(asked: dict[str, Any]) -> None:
    asked["why"] = "no replica answers"
    found = elect(observed(), designation())
    assert (found["lines"], found["results"][0]["error"]) == (["t-0: no replica answers"], "no replica answers")


def test_a_preferred_election_needs_no_plan(asked: dict[str, Any]) -> None:
    wanted = Election("t", 0, "preferred")
    assert plan(observed(), wanted)["lost"] == []
    elect(observed(), wanted)
    assert asked["elected"] == [(Kind.PREFERRED, {T0: -1})]


@pytest.mark.parametrize("wanted", [Election("t", 0, "designation"), Election("t", 0, "unclean", 2)])
def test_a_designation_and_nothing_else_names_its_leader(wanted: Election, asked: dict[str, Any]) -> None:
    for ask in (plan, elect):
        with pytest.raises(BadOption, match="a designation names its leader"):
            ask(observed(), wanted)
    assert asked["elected"] == []


@pytest.mark.parametrize("text", ['{"topic": "t", "partition": 0, "type": "any"}', '{"topic": "t", "type": "unclean"}'])
def test_what_is_no_election_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=Election)
