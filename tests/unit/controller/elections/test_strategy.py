"""What a topic wants done where nobody may lead cleanly: which of two keys counts, on which level."""

import pytest
from tests.unit.controller.cluster import Cluster

from strandline.base.effects import Report
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image
from strandline.metadata.records import ConfigRecord
from strandline.metadata.strategy import STRATEGY_KEY, UNCLEAN_KEY, Strategy, strategy_of

S, U = STRATEGY_KEY, UNCLEAN_KEY
ROWS: list[tuple[str, dict[str, str], dict[str, str], dict[str, ConfigValue], Strategy]] = [
    ("nothing is set", {}, {}, {}, Strategy.BALANCED),
    ("the older key allows it", {U: "true"}, {}, {}, Strategy.AGGRESSIVE),
    ("the older key forbids it", {U: "false"}, {}, {}, Strategy.BALANCED),
    ("the strategy goes first on one level", {U: "true", S: "None"}, {}, {}, Strategy.NONE),
    ("a topic's older key goes before the cluster's strategy", {U: "true"}, {S: "None"}, {}, Strategy.AGGRESSIVE),
    ("the cluster's goes before the file's", {}, {U: "true"}, {S: "None"}, Strategy.AGGRESSIVE),
    ("the file's strategy", {}, {}, {S: "Aggressive", U: False}, Strategy.AGGRESSIVE),
    ("the file's older key", {}, {}, {U: True}, Strategy.AGGRESSIVE),
]


@pytest.mark.parametrize(("why", "topic", "cluster", "file", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_the_strategy_in_force(
    why: str, topic: dict[str, str], cluster: dict[str, str], file: dict[str, ConfigValue], expected: Strategy
) -> None:
    del why
    image = Image()
    for kind, name, values in ((TOPIC_RESOURCE, "t", topic), (BROKER_RESOURCE, "", cluster)):
        for key, value in values.items():
            image.apply(ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value))
    assert strategy_of(image, "t", file) is expected


@pytest.mark.parametrize(("value", "strategy"), [(True, "Aggressive"), (False, "Balanced")])
def test_a_file_with_the_older_key_learns_of_the_newer(value: bool, strategy: str) -> None:
    warnings = [e.text for e in Cluster(static={U: value}).effects if isinstance(e, Report) and e.level == "warning"]
    assert warnings == [f"{U} is deprecated: set {S}={strategy} instead"]
