"""Plans of one workload alone, with the faults and options that the seed has drawn.

So a workload that ordinary seeds do not have can be tried without a change of what those meet.
"""

from msgspec import structs

from strandline.sim.runs.plan import TRANSACTIONS, Plan

# Transactions whose producers are gone end soon.
EAGER = {TRANSACTIONS: {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}}


def alone(plan: Plan, workload: str) -> Plan:
    options = plan.options
    settings = options.settings | EAGER.get(workload, {})
    return structs.replace(plan, options=structs.replace(options, workloads=(workload,), settings=settings))
