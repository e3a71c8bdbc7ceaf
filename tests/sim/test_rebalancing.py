"""Groups of the consumer protocol in the simulator: they get what they must, and the laws find it if not."""

from pathlib import Path

from strandline.sim.runs.campaign import Worker

PLAN = Path(__file__).parents[1] / "planted" / "plans" / "rebalancing.json"
FOUND_AT_ONCE = {  # bugs, each with what is said of it
    "partition-given-before-it-is-released": "of another member",
    "revoked-before-it-is-reported": "has not given it back",
    "loaded-member-has-no-session": "which is silent for",
    "classic-heartbeat-begins-no-session": "which is silent for",
    "heartbeat-answered-before-its-record-is-committed": "is not committed",
    "upgrade-forgets-assignments": "has not given it back",
    "downgrade-begins-anew": "which goes on as a classic group",
}


def test_the_laws_of_groups_find_planted_bugs_in_a_plan_and_each_by_its_own_law() -> None:
    for name, why in FOUND_AT_ONCE.items():
        worker = Worker(f"tests.planted.hunted:{name}", plan=PLAN)
        try:
            assert why in worker.run(1).check, name
        finally:
            worker.stop()
