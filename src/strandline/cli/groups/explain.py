"""`strandline explain --group`: why a group does not make progress."""

import json

from strandline.cli.connect import Cluster
from strandline.diagnosis.groups.gathering import gathered
from strandline.diagnosis.groups.progress import as_json, judge_group, lines_of
from strandline.diagnosis.situation import status_of


def explain_group(cluster: Cluster, group_id: str, json_output: bool) -> int:
    """Print what is wrong with the group; the exit status is that of `strandline explain`."""
    facts = gathered(cluster.config, cluster.options, group_id)
    findings = judge_group(facts)
    print(json.dumps([as_json(facts, findings)]) if json_output else "\n".join(lines_of(facts, findings)))
    return status_of(findings)
