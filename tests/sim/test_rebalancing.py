"""Groups of the consumer protocol in the simulator: they get what they must, and the laws find it if not."""

from pathlib import Path

from strandline.sim.runs.campaign import Worker

PLAN = Path(__file__).parents[1] / "planted" / "plans" / "rebalancing.json"
FOUND_AT_ONCE = {  # a bug or two for each law, with what is said of it; a campaign hunts all
    "partition-given-before-it-is-released": "of another member",
    "revoked-before-it-is-reported": "has not given it back",
    "classic-heartbeat-begins-no-session": "which is silent for",
    "heartbeat-answered-before-its-record-is-committed": "is not committed",
    "downgrade-begins-anew": "which goes on as a classic group",
}


def test_the_laws_of_groups_find_planted_bugs_in_a_plan_and_each_by_its_own_law() -> None:
    for name, why in FOUND_AT_ONCE.items():
        worker = Worker(f"tests.planted.hunted:{name}", plan=PLAN)
        try:
            assert why in worker.run(1).check, name
        finally:
            worker.stop()
