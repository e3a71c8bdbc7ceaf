"""docs/configs.md, made from the tables of keys: `python tests/tidy/configs_page.py` writes it again."""

from collections.abc import Iterator
from pathlib import Path

from strandline.metadata.configs.client_metrics import CLIENT_METRICS_CONFIGS
from strandline.metadata.configs.config_docs import WITHOUT_EFFECT, documentation
from strandline.metadata.configs.config_key import ConfigKey, show_value
from strandline.metadata.configs.dynamic_configs import ONE_FOR_ALL, update_mode
from strandline.metadata.configs.group_configs import GROUP_CONFIGS
from strandline.metadata.configs.node_configs import NODE_CONFIGS
from strandline.metadata.configs.topic_configs import SHOWN

PAGE = Path(__file__).parents[2] / "docs" / "configs.md"

HEAD = """# Configurations

Every key has Kafka's name, default and limits. A rejected value gets Kafka's error message. This page is generated from
the tables in `metadata/configs/topic_configs.py`, `metadata/configs/node_configs.py`,
`metadata/configs/group_configs.py`, `metadata/configs/dynamic_configs.py` and `metadata/configs/config_docs.py`, by
`python tests/tidy/configs_page.py`. A test checks that they agree.

## Levels

A topic's setting comes from the first of these levels that has one. `strandline configs describe` and DescribeConfigs
show all levels, with the key and the unit of each:

| level | source | set by |
|---|---|---|
| the topic | `DYNAMIC_TOPIC_CONFIG` | `configs alter … topics --entity-name t`, or when it is created |
| one broker, while it runs | `DYNAMIC_BROKER_CONFIG` | `configs alter … brokers --entity-name 1` |
| all brokers, while they run | `DYNAMIC_DEFAULT_BROKER_CONFIG` | `configs alter … brokers --entity-default` |
| the broker's file | `STATIC_BROKER_CONFIG` | the properties that it was started with |
| the table below | `DEFAULT_CONFIG` | |

```
strandline configs alter --entity-type topics --entity-name t --add-config cleanup.policy=[compact,delete]
strandline configs alter --entity-type brokers --entity-default --add-config log.segment.bytes=16777216
strandline configs alter --entity-type brokers --entity-name 2 --add-config follower.replication.throttled.rate=1000000
strandline configs describe --entity-type brokers --entity-name 2 --all --docs
strandline configs alter --entity-type groups --entity-name g --add-config consumer.session.timeout.ms=60000
```

Keys that decide about committed records have one value in the cluster: {one_for_all} cannot be set for one broker
alone. A broker's file does not count for `min.insync.replicas`: the first controller writes the value of its file into
the metadata. An invalid setting of a broker is rejected with INVALID_REQUEST, one of a topic with INVALID_CONFIG, as
in Kafka.

Three things differ from Kafka. An unknown key is rejected (Kafka keeps it for plugins). Any broker forwards a change
for another broker. A running broker adds no listener, and resizes no pool of threads.
"""

GROUPS = (
    "A consumer group has a value of its own (`DYNAMIC_GROUP_CONFIG`), or that of its coordinator. The group need not",
    "exist. The controller checks a value with the limits of its own file (`group.consumer.min.…`, `…max.…`), and a",
    "session timeout must be greater than the heartbeat interval. Keys of share and streams groups are rejected.",
)


CLIENT_METRICS = """## Client metrics

A `client-metrics` resource is a subscription: it says which clients push which metrics, and how often (KIP-714,
[metrics.md](metrics.md#metrics-that-clients-push)). It is there as long as a key of it is set. A pattern of `match` is
a regular expression, which must match all of a client's value. It is matched in a bounded number of steps, so it has no
look-ahead and no references to groups. Only the first 250 letters of a value count.

```
strandline configs alter --entity-type client-metrics --entity-name producers \\
  --add-config 'metrics=org.apache.kafka.producer.,interval.ms=10000,match=[client_id=app-.*]'
strandline configs describe --entity-type client-metrics --entity-name producers
```
"""


def page() -> str:
    one_for_all = ", ".join(f"`{name}`" for name in sorted(ONE_FOR_ALL))
    lines = [HEAD.replace("{one_for_all}", one_for_all), "## Topics", "", *table(SHOWN, has_update=False), ""]
    lines += ["## Groups", "", *GROUPS, "", *table(tuple(GROUP_CONFIGS.values()), has_update=False), ""]
    lines += ["## Nodes", "", *table(tuple(NODE_CONFIGS.values()), has_update=True), ""]
    lines += [CLIENT_METRICS, *of_client_metrics(), ""]
    lines += ["## Accepted without effect", ""]
    lines += ["These keys are checked, kept and shown, so that Kafka's files and tools work. They change nothing.", ""]
    lines += [
        "| key | why |",
        "|---|---|",
        *(f"| `{name}` | {WITHOUT_EFFECT[name]} |" for name in sorted(WITHOUT_EFFECT)),
    ]
    return "\n".join(lines) + "\n"


def table(keys: tuple[ConfigKey, ...], *, has_update: bool) -> Iterator[str]:
    yield f"| key | type | default | {'update' if has_update else 'broker’s default'} | |"
    yield "|---|---|---|---|---|"
    for key in keys:
        default = "required" if key.required else show_value(key.default)
        third = update_mode(key.name) if has_update else ", ".join(f"`{name}`" for name, _ in key.synonyms)
        shown = "" if default in (None, "") else f"`{default}`"
        yield f"| `{key.name}` | {key.type.lower()} | {shown} | {third} | {documentation(key)} |"


def of_client_metrics() -> Iterator[str]:
    yield "| key | type | default | |"
    yield "|---|---|---|---|"
    for key in CLIENT_METRICS_CONFIGS.values():
        default = show_value(key.default)
        yield f"| `{key.name}` | {key.type.lower()} | {f'`{default}`' if default else ''} | {documentation(key)} |"


if __name__ == "__main__":
    PAGE.write_text(page())
