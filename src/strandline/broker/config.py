"""A node's configuration, from the text of a Kafka property file.

`NodeConfig.from_properties` reads every key by its row in the table, then decides what the keys mean together:
listeners, roles, quorum. All problems are found in one go, and reported in Kafka's words.

Invariants:
  - every key of the table is readable by its Kafka name through `integer`, `text`, `boolean`, `texts` or `number`;
  - `explicit` has only what the file says, so that a default is never mistaken for a choice;
  - unknown keys are kept and never a problem.
"""

from collections.abc import Mapping

from strandline.base.effects import Endpoint
from strandline.base.ids import NodeId
from strandline.base.secret import Secret
from strandline.base.value import Value
from strandline.broker.listeners.listeners import (
    INTER_BROKER_NAME,
    INTER_BROKER_PROTOCOL,
    ListenerConfig,
    as_texts,
    inter_broker_listener,
    read_listeners,
    read_protocols,
)
from strandline.broker.listeners.sasl import misplaced, sasl_problems
from strandline.broker.listeners.settings import ListenerSettings, read_of_mechanisms, read_own
from strandline.broker.listeners.tls import tls_problems
from strandline.metadata.configs.config_key import ConfigValue, invalid
from strandline.metadata.configs.listener_limits import listener_and_limit, read_listener_limits
from strandline.metadata.configs.node_configs import ALL_DIRECTORIES, METRICS_LISTENER
from strandline.metadata.configs.node_configs import NODE_CONFIGS as NODE_CONFIGS
from strandline.metadata.configs.sasl_configs import mechanism_and_key
from strandline.metadata.configs.tls_configs import listener_and_key
from strandline.metadata.configs.topic_configs import topic_default
from strandline.metadata.security.acls import principals_in
from strandline.security.protocols import PLAINTEXT, uses_sasl, uses_tls


class ConfigError(Exception):
    """The configuration cannot be used; one problem per line."""

    def __init__(self, problems: list[str]) -> None:
        assert problems
        super().__init__("\n".join(problems))
        self.problems = problems


class Voter(Value, frozen=True):
    node_id: NodeId
    endpoint: Endpoint


class NodeConfig(Value, frozen=True):
    values: dict[str, ConfigValue]  # every key of the table
    explicit: dict[str, ConfigValue]  # only those that were given
    unknown: dict[str, str]
    listeners: tuple[ListenerConfig, ...]
    advertised_listeners: tuple[ListenerConfig, ...]  # of the broker role; host and port 0 where not said
    voters: tuple[Voter, ...]
    inter_broker_listener_name: str
    listener_limits: dict[str, dict[str, int]]  # of single listeners, by key and by listener name in lower case
    protocols: dict[str, str]  # by listener name
    of_listeners: dict[str, dict[str, ConfigValue]]  # their own settings, by listener name in lower case
    of_mechanisms: dict[str, dict[str, dict[str, ConfigValue]]]  # those for one mechanism of SASL there

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "NodeConfig":
        """Raises ConfigError with all problems."""
        problems: list[str] = []
        explicit = read_explicit(properties, problems)
        values = {name: explicit.get(name, key.default) for name, key in NODE_CONFIGS.items()}
        for name, key in NODE_CONFIGS.items():
            if key.required and name not in properties:
                problems.append(f'Missing required configuration "{name}" which has no default value.')
        protocols = read_protocols(values, explicit, problems)
        own = read_own(properties, problems)
        of_mechanisms = read_of_mechanisms(properties, problems)
        listeners = read_listeners("listeners", values["listeners"], problems)
        controllers = as_texts(values["controller.listener.names"])
        advertised = read_listeners("advertised.listeners", values["advertised.listeners"] or (), problems)
        config = cls(
            values=values,
            explicit=explicit,
            unknown={
                name: text
                for name, text in properties.items()
                if is_unknown(name, protocols) and listener_and_limit(name) is None
            },
            listeners=listeners,
            advertised_listeners=advertised or tuple(at for at in listeners if at.name not in controllers),
            voters=read_voters(as_texts(values["controller.quorum.voters"]), problems),
            inter_broker_listener_name=inter_broker_listener(values, explicit),
            protocols=protocols,
            of_listeners=own,
            listener_limits=read_listener_limits(properties, problems),
            of_mechanisms=of_mechanisms,
        )
        if not problems:
            problems += [
                *config.contradictions(),
                *config.missing_directories(),
                *config.about_tls(),
                *config.about_sasl(),
            ]
        if problems:
            raise ConfigError(problems)
        assert explicit.keys() <= properties.keys(), "a default is no choice"
        assert config.voters and config.log_dirs
        assert config.listeners or not config.is_controller
        return config

    # --- by Kafka's names

    def integer(self, name: str) -> int:
        value = self.values[name]
        assert isinstance(value, int) and not isinstance(value, bool), name
        return value

    def boolean(self, name: str) -> bool:
        value = self.values[name]
        assert isinstance(value, bool), name
        return value

    def text(self, name: str) -> str:
        """Empty if the key is not set and has no default."""
        value = self.values[name]
        assert value is None or isinstance(value, str), name
        return value or ""

    def texts(self, name: str) -> tuple[str, ...]:
        return as_texts(self.values[name])

    def number(self, name: str) -> float:
        value = self.values[name]
        assert isinstance(value, float | int), name
        return value

    # --- what the keys mean together

    @property
    def node_id(self) -> NodeId:
        return NodeId(self.integer("node.id"))

    @property
    def is_broker(self) -> bool:
        return "broker" in self.texts("process.roles")

    @property
    def is_controller(self) -> bool:
        return "controller" in self.texts("process.roles")

    @property
    def has_authorizer(self) -> bool:
        return bool(self.text("authorizer.class.name"))

    @property
    def super_users(self) -> frozenset[str]:
        """Principals to whom everything is permitted."""
        return frozenset(principals_in(self.text("super.users")))

    @property
    def allows_everyone(self) -> bool:
        """Is everything permitted on a resource that no ACL is about?"""
        return self.boolean("allow.everyone.if.no.acl.found")

    @property
    def controller_listener_names(self) -> tuple[str, ...]:
        return tuple(name.upper() for name in self.texts("controller.listener.names"))

    def protocol_of(self, listener: str) -> str:
        """The security protocol that the listener of this name speaks, here and on other nodes."""
        return self.protocols[listener.upper()]

    def settings_of(self, listener: str) -> ListenerSettings:
        """What TLS and SASL are configured with there, for clients and for connections to other nodes."""
        own = self.of_listeners.get(listener.lower(), {})
        of_mechanisms = self.of_mechanisms.get(listener.lower(), {})
        return ListenerSettings(listener, self.protocol_of(listener), self.values, own, of_mechanisms)

    @property
    def used_listener_names(self) -> tuple[str, ...]:
        """Those where the node listens, and those of other nodes to which it connects."""
        served = [listener.name for listener in self.listeners]
        return tuple(dict.fromkeys((*served, self.inter_broker_listener_name, *self.controller_listener_names)))

    @property
    def has_secrets(self) -> bool:
        """Are there passwords or keys in it?"""
        of_mechanisms = (own for listener in self.of_mechanisms.values() for own in listener.values())
        settings = (self.explicit, *self.of_listeners.values(), *of_mechanisms)
        return any(isinstance(value, Secret) for own in settings for value in own.values())

    @property
    def sasl_listener_names(self) -> tuple[str, ...]:
        """Those where the node listens, and clients authenticate."""
        return tuple(at.name for at in self.listeners if uses_sasl(self.protocols.get(at.name, PLAINTEXT)))

    @property
    def log_dirs(self) -> tuple[str, ...]:
        return self.texts("log.dirs") or self.texts("log.dir")

    @property
    def metadata_log_dir(self) -> str:
        return self.text("metadata.log.dir") or self.log_dirs[0]

    @property
    def metrics_listener(self) -> Endpoint | None:
        """Where metrics are to be served; None: nowhere. Who reads them needs no permission, so not to everybody."""
        host, _, port = self.text(METRICS_LISTENER).rpartition(":")
        return Endpoint(host.strip("[]") or "127.0.0.1", int(port)) if port else None

    @property
    def metadata_snapshot_bytes(self) -> int:
        return self.integer("metadata.log.max.record.bytes.between.snapshots")

    @property
    def metadata_snapshot_ms(self) -> int:
        return self.integer("metadata.log.max.snapshot.interval.ms")

    @property
    def auto_create_topics_enable(self) -> bool:
        return self.boolean("auto.create.topics.enable")

    def contradictions(self) -> list[str]:
        """What is wrong between keys that are each right."""
        found = (*self.about_listeners(), *self.about_voters(), *self.about_numbers())
        return [problem for is_wrong, problem in found if is_wrong]

    def about_listeners(self) -> tuple[tuple[bool, str], ...]:
        names = [listener.name for listener in self.listeners]
        controllers = self.controller_listener_names
        brokers = [name for name in names if name not in controllers]
        return (
            (len(set(names)) < len(names), "Each listener must have a different name"),
            (
                self.is_broker and not brokers,
                "There must be at least one listener that is not in controller.listener.names for the broker role",
            ),
            (
                self.is_controller and not set(controllers) & set(names),
                "controller.listener.names must contain at least one of listeners when process.roles has controller",
            ),
            (
                not self.is_controller and bool(set(controllers) & set(names)),
                "controller.listener.names must not appear in listeners unless process.roles has controller",
            ),
            (
                self.is_broker and self.inter_broker_listener_name not in brokers,
                invalid(
                    "inter.broker.listener.name",
                    self.inter_broker_listener_name,
                    "it must be one of the broker's listeners",
                ),
            ),
            (
                all(name in self.explicit for name in (INTER_BROKER_NAME, INTER_BROKER_PROTOCOL)),
                f"Only one of {INTER_BROKER_NAME} and {INTER_BROKER_PROTOCOL} should be set.",
            ),
            (
                self.inter_broker_listener_name not in self.protocols,
                f"No security protocol defined for listener {self.inter_broker_listener_name}, which other brokers use",
            ),
            (
                any(at.name in controllers for at in self.advertised_listeners),
                "advertised.listeners must not have a controller listener",
            ),
            (
                any(at.host in ("0.0.0.0", "::") for at in self.advertised_listeners)
                and "advertised.listeners" in self.explicit,
                "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.",
            ),
        )

    def about_tls(self) -> list[str]:
        served = [listener.name for listener in self.listeners]
        return [
            problem
            for name in self.used_listener_names
            if name in self.protocols and uses_tls(self.protocols[name])
            for problem in tls_problems(self.settings_of(name), is_served=name in served)
        ]

    def about_sasl(self) -> list[str]:
        found = list(misplaced(self.explicit, self.of_listeners))
        for name in (self.inter_broker_listener_name, *self.controller_listener_names):
            if uses_sasl(self.protocols.get(name, PLAINTEXT)) and not self.boolean("cluster.secret.required"):
                found.append(
                    f"Listener {name} speaks {self.protocols[name]}, where nodes have to prove the cluster's secret,"
                    " and cluster.secret.required=false says that they do not"
                )
        for listener in self.sasl_listener_names:
            found += sasl_problems(self.settings_of(listener))
        return found

    def about_voters(self) -> tuple[tuple[bool, str], ...]:
        voter_ids = [voter.node_id for voter in self.voters]
        return (
            (not self.voters, "controller.quorum.voters must name at least one controller"),
            (len(set(voter_ids)) < len(voter_ids), "controller.quorum.voters has a node id twice"),
            (
                self.is_controller and self.node_id not in voter_ids,
                f"If process.roles has controller, node.id {self.node_id} must be in controller.quorum.voters",
            ),
            (
                not self.is_controller and self.node_id in voter_ids,
                f"If process.roles has no controller, node.id {self.node_id} must not be in controller.quorum.voters",
            ),
        )

    def about_numbers(self) -> tuple[tuple[bool, str], ...]:
        return (
            (
                self.integer("broker.heartbeat.interval.ms") * 2 > self.integer("broker.session.timeout.ms"),
                "broker.session.timeout.ms must be at least twice broker.heartbeat.interval.ms",
            ),
            (
                self.integer("replica.fetch.wait.max.ms") > self.integer("replica.lag.time.max.ms"),
                "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms"
                " to prevent frequent changes in ISR",
            ),
            (
                self.integer("replica.fetch.wait.max.ms") > self.integer("replica.socket.timeout.ms"),
                "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms"
                " to prevent unnecessary socket timeouts",
            ),
            (
                0
                <= self.integer("connections.max.idle.ms")
                <= self.integer("connection.failed.authentication.delay.ms"),
                "connection.failed.authentication.delay.ms should always be less than connections.max.idle.ms"
                " to prevent failed authentication responses from timing out",
            ),
            (
                topic_default("retention.ms", self.values)[0] == 0,
                "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
            ),
            (
                self.integer("group.min.session.timeout.ms") > self.integer("group.max.session.timeout.ms"),
                "group.min.session.timeout.ms must not be above group.max.session.timeout.ms",
            ),
            *self.consumer_group_rules(),
            (
                self.integer("max.connections.per.ip") == 0 and not self.text("max.connections.per.ip.overrides"),
                "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
            ),
            (
                0 <= self.integer("queued.max.request.bytes") < self.integer("socket.request.max.bytes"),
                "queued.max.request.bytes must be greater than or equal to socket.request.max.bytes",
            ),
        )

    def consumer_group_rules(self) -> tuple[tuple[bool, str], ...]:
        """A broker's own values lie within the limits that it sets, and a session has room for a heartbeat."""
        rules = []
        for least, own, most in (
            (
                "group.consumer.min.heartbeat.interval.ms",
                "group.consumer.heartbeat.interval.ms",
                "group.consumer.max.heartbeat.interval.ms",
            ),
            (
                "group.consumer.min.session.timeout.ms",
                "group.consumer.session.timeout.ms",
                "group.consumer.max.session.timeout.ms",
            ),
        ):
            for low, high, blamed in ((least, most, most), (least, own, own), (own, most, own)):
                other, how = (low, "greater") if blamed == high else (high, "less")
                why = f"{blamed} must be {how} than or equal to {other}"
                rules.append((self.integer(low) > self.integer(high), why))
        session, heartbeat = "group.consumer.session.timeout.ms", "group.consumer.heartbeat.interval.ms"
        return (
            *rules,
            (self.integer(heartbeat) >= self.integer(session), f"{heartbeat} must be less than {session}"),
            (
                "classic" not in self.texts("group.coordinator.rebalance.protocols"),
                "Disabling the 'classic' protocol is not supported.",
            ),
        )

    def missing_directories(self) -> list[str]:
        cordoned = self.texts("cordoned.log.dirs")
        missing = [path for path in cordoned if path not in (*self.log_dirs, ALL_DIRECTORIES)]
        if not missing:
            return []
        why = "All entries in cordoned.log.dirs must be present in log.dirs or log.dir."
        return [f"{why} Missing entries : {', '.join(missing)}"]


def is_unknown(name: str, protocols: Mapping[str, str]) -> bool:
    """A setting of a listener that nobody knows is as unknown as a key without a row."""
    of_mechanism = mechanism_and_key(name)
    if of_mechanism is not None:
        return of_mechanism[0].upper() not in protocols
    own = listener_and_key(name)
    if own is not None:
        return own[0].upper() not in protocols or own[1] not in NODE_CONFIGS
    return name not in NODE_CONFIGS


def read_explicit(properties: Mapping[str, str], problems: list[str]) -> dict[str, ConfigValue]:
    explicit: dict[str, ConfigValue] = {}
    for name, text in properties.items():
        key = NODE_CONFIGS.get(name)
        if key is None:
            continue
        problem = key.why_invalid(text)
        if problem is not None:
            problems.append(problem)
        else:
            explicit[name] = key.parse(text)
    return explicit


def read_voters(entries: tuple[str, ...], problems: list[str]) -> tuple[Voter, ...]:
    """ "id@host:port"."""
    found = []
    for entry in entries:
        node, at, address = entry.partition("@")
        host, colon, port = address.rpartition(":")
        if not (at and colon and host and node.isdigit() and port.isdigit() and int(port) < 65536):
            problems.append(invalid("controller.quorum.voters", entry, "expected {id}@{host}:{port}"))
            continue
        found.append(Voter(NodeId(int(node)), Endpoint(host.strip("[]"), int(port))))
    return tuple(found)


# --- Java's property files


def parse_properties(text: str) -> dict[str, str]:
    """The keys and values of a Java property file; of a repeated key, the last value."""
    found: dict[str, str] = {}
    for line in logical_lines(text):
        key, value = split_property(line)
        if key:
            found[key] = value
    return found


def logical_lines(text: str) -> list[str]:
    """Lines without comments, with continued lines (a backslash at the end) joined."""
    lines: list[str] = []
    pending = ""
    for raw in text.splitlines():
        line = raw.lstrip()
        if not pending and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        lines.append(pending + line)
        pending = ""
    return [*lines, pending] if pending else lines


def split_property(line: str) -> tuple[str, str]:
    """The key ends at the first '=', ':' or blank that no backslash escapes."""
    assert "\n" not in line
    end = 0
    while end < len(line) and line[end] not in "=: \t":
        end += 2 if line[end] == "\\" else 1
    key, rest = line[:end], line[end:].lstrip()
    assert len(key) <= len(line)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip()
    return unescape(key), unescape(rest).rstrip()


def unescape(text: str) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\" and position < len(text):
            char = text[position]
            position += 1
            if char == "u" and is_hex(text[position : position + 4]):
                char = chr(int(text[position : position + 4], 16))
                position += 4
            else:
                char = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(char, char)
        parts.append(char)
    return "".join(parts)


def is_hex(text: str) -> bool:
    return len(text) == 4 and all(char in "0123456789abcdefABCDEF" for char in text)
