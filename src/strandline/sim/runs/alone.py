"""Plans of one workload alone, with the faults and options that the seed has drawn.

So a workload that ordinary seeds do not have can be tried without a change of what those meet.
"""

from msgspec import structs

from strandline.sim.runs import transactional
from strandline.sim.runs.plan import Plan


def alone(plan: Plan, workload: str) -> Plan:
    return structs.replace(plan, options=transactional.alone(plan.options, workload))
