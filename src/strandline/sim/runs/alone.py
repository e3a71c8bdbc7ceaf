"""Plans with what the seed has not drawn: one workload alone, or with an authorizer, or somebody who forges messages.

So what ordinary seeds do not have can be tried without a change of what those meet.
"""

from msgspec import structs

from strandline.sim.runs import drawn, grouped, transactional
from strandline.sim.runs.plan import Plan


def alone(plan: Plan, workload: str) -> Plan:
    if workload == grouped.REBALANCING:
        options = structs.replace(plan.options, workloads=())
        return structs.replace(plan, options=grouped.with_groups(plan.seed, options))
    return structs.replace(plan, options=transactional.alone(plan.options, workload))


def secured(plan: Plan, how: str) -> Plan:
    """`how`: one of `drawn.SECURED`."""
    has = {"authorizer": (True, False), "intruder": (False, True), "both": (True, True)}[how]
    return structs.replace(plan, options=drawn.secured(plan.seed, plan.options, authorizer=has[0], intruder=has[1]))


def chosen(plan: Plan, workload: str, how: str) -> Plan:
    """Empty: as the seed draws it."""
    plan = alone(plan, workload) if workload else plan
    return secured(plan, how) if how else plan
