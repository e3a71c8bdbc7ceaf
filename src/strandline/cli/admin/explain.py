"""`strandline explain`: why a partition is as it is, what it waits for, and which ways there are out of it.

With --group: why a group does not make progress (`cli.groups.explain`).
"""

import json

from strandline.cli.connect import HERE, Json, OfCluster, fail, misuse
from strandline.cli.groups.explain import explain_group
from strandline.client.admin.partitions import chosen
from strandline.client.admin.replica_logs import ReplicaLog, Unasked
from strandline.diagnosis.explaining import as_json, gathered, judge, lost_means, max_status
from strandline.diagnosis.partitions import numbers
from strandline.diagnosis.replica_logs import words
from strandline.diagnosis.situation import Facts, Finding, status_of


def explain(
    place: str | None = None, /, *, group: str | None = None, cluster: OfCluster = HERE, json_output: Json = False
) -> int:
    """Say what is wrong with a partition or a group, what it waits for, and what can be done.

    Each way out is shown with its cost in records and its command. Exit status 0 if there is nothing to do, 2 if
    an operator must act, 3 if a broker did not answer.

    Parameters
    ----------
    place
        TOPIC or TOPIC:PARTITION
    group
        instead of a partition: the consumer group that does not make progress
    """
    if (place is None) == (group is None):
        misuse("there is nothing to explain, or too much", "name either TOPIC, TOPIC:PARTITION or --group GROUP")
    if group is not None:
        return explain_group(cluster, group, json_output)
    assert place is not None
    states = chosen(cluster.config, place)
    if not all(state.is_of_our_own for state in states):
        fail(
            "this cluster does not report what its partitions wait for: it is not Strandline",
            "`strandline topics describe` shows what it does report",
            status=2,
        )
    found = [(facts, judge(facts)) for facts in gathered(cluster.config, cluster.options, states)]
    if json_output:
        print(json.dumps([as_json(facts, findings) for facts, findings in found]))
    else:
        for facts, findings in found:
            print("\n".join(lines_of(facts, findings)))
    return max_status([status_of(findings) for _, findings in found])


# --- for a person


def lines_of(facts: Facts, findings: tuple[Finding, ...]) -> list[str]:
    state = facts.state
    said = facts.ledger.words
    ledger = [f"  the loss ledger has {said} of it: {ledger_command(facts)}"] if said else []
    ledger += [f"  if one is lost: {text}" for text in lost_means(facts)]
    if not findings:
        return [f"{state.at}: healthy: broker {state.leader} leads, {numbers(state.isr)} in sync", *ledger]
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{state.at}: {finding.what}")
        lines += [f"  why: {text}" for text in finding.why]
        lines += [f"  waits for: {finding.waits_for}"] if finding.waits_for else []
    logged = [words(row) for row in facts.reports if isinstance(row, ReplicaLog)]
    lines += [f"  data: {text}" for text in logged]
    known = {text for finding in findings for text in finding.why}
    unasked = [words(row) for row in facts.reports if isinstance(row, Unasked)]
    lines += [f"  not asked: {text}" for text in unasked if text not in known]
    lines += ledger
    for finding in findings:
        for way in finding.ways:
            lines += [f"  way out: {way.what}", f"    costs: {way.costs}", f"    $ {way.command}"]
    if not any(finding.needs_action for finding in findings):
        lines.append(
            "  there is nothing to do"
            if status_of(findings) == 0
            else "  a broker did not answer, so there may be more"
        )
    return lines


def ledger_command(facts: Facts) -> str:
    seen = " --all" if facts.ledger.acknowledged else ""
    return f"strandline losses {facts.state.at.topic}:{facts.state.at.partition}{seen}{facts.options}"
