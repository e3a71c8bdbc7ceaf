"""Every configuration key is described, is read by somebody or says why not, and stands on the page."""

from pathlib import Path

from tests.tidy.configs_page import PAGE, page

from strandline.log.config import LogConfig
from strandline.metadata.configs.config_docs import OF_GROUPS, OF_NODES, OF_TOPICS, WITHOUT_EFFECT, documentation
from strandline.metadata.configs.dynamic_configs import (
    DYNAMIC_NODE_KEYS,
    ONE_FOR_ALL,
    TOPIC_DEFAULTS,
    synonyms_of,
    update_mode,
)
from strandline.metadata.configs.group_configs import GROUP_CONFIGS
from strandline.metadata.configs.node_configs import NODE_CONFIGS
from strandline.metadata.configs.topic_configs import TOPIC_CONFIGS

SOURCE = Path(__file__).parents[2] / "src" / "strandline"
STAND_INS = {name for row in TOPIC_CONFIGS.values() for name, _ in row.synonyms}
STAND_INS.remove("log.flush.scheduler.interval.ms")  # it has a meaning of its own as well


def test_the_page_is_what_the_tables_say() -> None:
    assert PAGE.read_text() == page(), "write it anew: python tests/tidy/configs_page.py"


def test_the_page_names_every_key() -> None:
    text = PAGE.read_text()
    keys = [*NODE_CONFIGS, *GROUP_CONFIGS, *(name for name, row in TOPIC_CONFIGS.items() if not row.is_internal)]
    assert [key for key in keys if f"`{key}`" not in text] == []


def test_every_key_has_one_text() -> None:
    assert set(OF_TOPICS) == set(TOPIC_CONFIGS)
    assert set(OF_NODES) == set(NODE_CONFIGS) - STAND_INS
    assert set(OF_GROUPS) == set(GROUP_CONFIGS)
    assert all(documentation(key) for key in (*NODE_CONFIGS.values(), *TOPIC_CONFIGS.values(), *GROUP_CONFIGS.values()))


def test_a_key_is_read_or_says_why_it_is_not_and_never_both() -> None:
    """By its name in quotes outside the tables; a topic's key also as a field of a log's configuration."""
    code = "\n".join(
        path.read_text()
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] not in ("metadata", "sim", "client")
    )
    fields = [name.replace("_", ".") for name in LogConfig.__struct_fields__]
    keys = [*TOPIC_CONFIGS, *(name for name in NODE_CONFIGS if name not in STAND_INS)]
    unread = [key for key in keys if f'"{key}"' not in code and key not in fields and key not in READ_OTHERWISE]
    assert sorted(unread) == sorted(WITHOUT_EFFECT)


# Read by a name that is put together, or by a name for the key.
READ_OTHERWISE = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "min.insync.replicas",
    "offsets.topic.segment.bytes",
    "transaction.state.log.segment.bytes",
    "strandline.metrics.listener",
    "unclean.recovery.strategy",
    "unclean.leader.election.enable",
    *(f"group.consumer.{limit}.session.timeout.ms" for limit in ("min", "max")),
    *(f"group.consumer.{limit}.heartbeat.interval.ms" for limit in ("min", "max")),
)


def test_dynamic_keys_are_keys_and_only_the_first_synonym_of_a_topics_key_is_dynamic() -> None:
    assert [key for key in sorted(DYNAMIC_NODE_KEYS) if key not in NODE_CONFIGS] == []
    assert set(ONE_FOR_ALL) <= set(TOPIC_DEFAULTS)
    assert (update_mode("log.retention.ms"), update_mode("log.retention.hours")) == ("cluster-wide", "read-only")
    assert synonyms_of("log.retention.minutes") == ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
    assert synonyms_of("node.id") == ("node.id",)
