"""min.insync.replicas as state of the cluster (T1).

Controller and leader decide with it about the same records: who is eligible, and what is committed. A leader that
commits by 1 what the controller thinks committed by 2 loses records in a clean election. So there is one value, in the
metadata log: a topic's own, else the cluster's. What stands in a node's file is only what it proposes while it is the
active controller and the cluster has none.

Kafka does this from the moment at which Eligible Leader Replicas are switched on; here it is always so.
"""

from typing import Any

from strandline.base.errors import ErrorCode
from strandline.controller.basis import Basis
from strandline.controller.configs import SET, plan_alter_configs
from strandline.metadata.configs.topic_configs import MIN_ISR_KEY, topic_default_text
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)


def plan_min_isr(basis: Basis) -> tuple[Any, ...]:
    """What gives the cluster a min ISR, once: as if somebody had set it, with all that this means for partitions."""
    if MIN_ISR_KEY in basis.image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {}):
        return ()
    value = topic_default_text(MIN_ISR_KEY, basis.static)
    resource = AlterConfigsResource(
        resource_type=BROKER_RESOURCE,
        resource_name=CLUSTER_DEFAULT,
        configs=(AlterableConfig(name=MIN_ISR_KEY, config_operation=SET, value=value),),
    )
    plan = plan_alter_configs(IncrementalAlterConfigsRequest(resources=(resource,)), basis)
    assert plan.response.responses[0].error_code == ErrorCode.NONE, "a node's file was checked when it started"
    return plan.records
