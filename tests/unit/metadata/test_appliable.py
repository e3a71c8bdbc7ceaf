"""Whatever setting the controller accepts, a broker can apply: else it would fall at each start, for good."""

from typing import Any

import pytest
from tests.unit.controller.cluster import Cluster
from tests.unit.replica.conftest import World

from strandline.metadata.configs.dynamic_configs import DYNAMIC_NODE_KEYS
from strandline.metadata.configs.topic_configs import TOPIC_CONFIGS
from strandline.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from strandline.metadata.records import ConfigRecord
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

LONG = 2**63
VALUES = (
    *("", " ", "*", ",", "a:b", "²:1", "1:²", "9" * 5000 + ":1", "1:" + "9" * 11, "0:1", "1:0,2:1"),
    *("nan", "inf", "-inf", "1e3", "0.5", "-1", "-2", "0", "1", "14", "1048576", "9" * 5000),
    *(str(2**31 - 1), str(-(2**31)), str(LONG - 1), str(-LONG), str(LONG)),
    *("TRUE", "compact", "delete", "compact,delete", "delete,delete", "LogAppendTime", "zstd", "gzip", "Balanced"),
)
SET, DELETE = 0, 1


def alter(cluster: Cluster, where: tuple[int, str], key: str, operation: int, value: str | None) -> int:
    config = AlterableConfig(name=key, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=where[0], resource_name=where[1], configs=(config,))
    answer: Any = cluster.ask(IncrementalAlterConfigsRequest(resources=(resource,)), version=1)
    return int(answer.responses[0].error_code)


@pytest.mark.parametrize("where", [(TOPIC_RESOURCE, "t"), (BROKER_RESOURCE, ""), (BROKER_RESOURCE, "1")])
def test_what_is_accepted_can_be_applied(where: tuple[int, str]) -> None:
    keys = TOPIC_CONFIGS if where[0] == TOPIC_RESOURCE else DYNAMIC_NODE_KEYS
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    world = World(1)
    world.create(replicas=(1,))
    accepted = 0
    for key in sorted(keys):
        for value in VALUES:
            if alter(cluster, where, key, SET, value):
                continue
            accepted += 1
            alter(cluster, where, key, DELETE, None)
            world.commit(ConfigRecord(resource_type=where[0], resource_name=where[1], name=key, value=value))
            world.produce(1, 1)
            world.run(1)
            world.commit(ConfigRecord(resource_type=where[0], resource_name=where[1], name=key, value=None))
    assert accepted > 100


def test_a_number_that_is_too_long_names_no_broker() -> None:
    assert alter(Cluster(brokers=1), (BROKER_RESOURCE, "9" * 5000), "message.max.bytes", SET, "1") == 42
