"""The limits of connections as a machine, with time given; what makes room when memory is short."""

import pytest
from tests.rows import each

from strandline.broker.config import ConfigError, NodeConfig
from strandline.metadata.records import BROKER_RESOURCE
from strandline.server.network.limits import (
    BURST_S,
    NOW,
    PAUSE_MS_MAX,
    UNTIL_ONE_CLOSES,
    ConnectionLimits,
    LimitsConfig,
    plain,
)
from strandline.server.network.limits_config import CurrentLimits, address_rates, limits_of
from strandline.server.network.refusals import (
    ADDRESSES_MAX,
    LINES_MAX,
    LINES_OF_KIND_MAX,
    SPAN_MS,
    SUMMARIES_MAX,
    LogLimit,
    printable,
)
from strandline.server.network.slowness import SlowFrame, SlowReader, too_slow_to_read, too_slow_to_send

NODES, CLIENTS, OTHERS = "CONTROLLER", "PLAINTEXT", "EXTERNAL"


def limits(**config: object) -> ConnectionLimits:
    return ConnectionLimits(LimitsConfig(node_listeners=frozenset([NODES]), **config))  # type: ignore[arg-type]  # any


def opened(it: ConnectionLimits, count: int, listener: str = CLIENTS, address: str = "10.0.0.1", at: int = 0) -> None:
    for _ in range(count):
        it.opened(listener, address, at)
    it.check()


# --- numbers


def test_without_configuration_there_are_no_limits() -> None:
    it = ConnectionLimits()
    opened(it, 5000)
    assert (it.wait_ms(CLIENTS, 0), it.why_refused("10.0.0.1", 0), it.is_over) == (NOW, None, False)


def test_over_the_number_of_the_node_clients_wait_for_a_connection_to_close_and_nodes_are_let_in() -> None:
    it = limits(connections_max=3)
    opened(it, 2)
    assert it.wait_ms(CLIENTS, 0) == NOW
    opened(it, 1, NODES)
    assert (it.wait_ms(CLIENTS, 0), it.wait_ms(OTHERS, 0), it.wait_ms(NODES, 0)) == (
        UNTIL_ONE_CLOSES,
        UNTIL_ONE_CLOSES,
        NOW,
    )
    assert not it.is_over
    opened(it, 1, NODES)
    assert it.is_over
    it.closed(CLIENTS, "10.0.0.1")
    assert (it.is_over, it.wait_ms(CLIENTS, 0)) == (False, UNTIL_ONE_CLOSES)
    it.closed(CLIENTS, "10.0.0.1")
    assert it.wait_ms(CLIENTS, 0) == NOW


def test_the_number_of_a_listener_holds_for_it_alone_and_for_nodes_too() -> None:
    it = limits(of_listener_max={CLIENTS: 2, NODES: 1})
    opened(it, 2)
    opened(it, 1, NODES)
    assert (it.wait_ms(CLIENTS, 0), it.wait_ms(NODES, 0), it.wait_ms(OTHERS, 0)) == (
        UNTIL_ONE_CLOSES,
        UNTIL_ONE_CLOSES,
        NOW,
    )
    it.closed(CLIENTS, "10.0.0.1")
    assert it.wait_ms(CLIENTS, 0) == NOW


def test_the_number_of_an_address_is_its_own_and_counts_over_all_listeners() -> None:
    it = limits(per_address_max=2, per_address_overrides={"10.0.0.9": 3, "10.0.0.8": 0})
    opened(it, 1)
    opened(it, 1, OTHERS)
    opened(it, 2, address="10.0.0.9")
    refusal = it.why_refused("10.0.0.1", 0)
    assert refusal is not None
    assert ("max.connections.per.ip" in refusal[0], refusal[1]) == (True, 0)
    assert it.why_refused("10.0.0.8", 0) is not None
    assert it.why_refused("10.0.0.9", 0) is None
    assert it.why_refused("10.0.0.2", 0) is None
    assert it.refused["per ip"] == 2
    it.closed(OTHERS, "10.0.0.1")
    assert it.why_refused("10.0.0.1", 0) is None


# --- rates


def test_over_a_rate_the_acceptor_waits_until_one_more_is_within_it() -> None:
    it = limits(rate=20)
    opened(it, 20 * BURST_S)
    assert it.wait_ms(CLIENTS, 0) == 50
    assert it.wait_ms(CLIENTS, 49) == 1
    assert it.wait_ms(CLIENTS, 50) == NOW
    opened(it, 1, at=50)
    assert it.wait_ms(CLIENTS, 50) == 50
    rested = 50 + 5000 * BURST_S
    assert it.wait_ms(CLIENTS, rested) == NOW
    opened(it, 20 * BURST_S, at=rested)
    assert it.wait_ms(CLIENTS, rested) == 50, "a rest saves no more than one burst"


def test_nodes_have_no_rate_but_that_of_their_listener() -> None:
    it = limits(rate=1, of_listener_rate={NODES: 2})
    opened(it, BURST_S)
    assert (it.wait_ms(CLIENTS, 0), it.wait_ms(OTHERS, 0), it.wait_ms(NODES, 0)) == (1000, 1000, NOW)
    opened(it, 2 * BURST_S, NODES)
    assert it.wait_ms(NODES, 0) == 500
    assert it.wait_ms(CLIENTS, 0) == 1000, "nodes take nothing of the others' rate"


def test_over_the_rate_of_its_address_a_connection_is_closed_after_a_pause() -> None:
    it = limits()
    it.set_address_rates({"10.0.0.1": 2, "::ffff:10.0.0.3": 5}, default=0.5)
    for _ in range(2 * BURST_S):
        assert it.why_refused("10.0.0.1", 0) is None
    refusal = it.why_refused("10.0.0.1", 0)
    assert refusal is not None
    assert ("connection_creation_rate" in refusal[0], refusal[1]) == (True, 500)
    assert it.why_refused("10.0.0.1", 500) is None
    assert [it.why_refused("10.0.0.2", 0) is None for _ in range(6)] == [True] * 5 + [False]
    slow = it.why_refused("10.0.0.2", 0)
    assert slow is not None
    assert slow[1] == PAUSE_MS_MAX
    assert all(it.why_refused("10.0.0.3", 0) is None for _ in range(5 * BURST_S))
    assert it.refused["rate of ip"] == 3
    it.set_address_rates({}, default=None)
    assert it.why_refused("10.0.0.1", 0) is None


def test_addresses_are_compared_as_the_same_text() -> None:
    assert [plain(a) for a in ("10.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "::1")] == [
        "10.0.0.1",
        "10.0.0.1",
        "fe80::1",
        "::1",
    ]


# --- configuration

PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:1,EXTERNAL://127.0.0.1:2,CONTROLLER://127.0.0.1:3",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:3",
}


def test_limits_come_from_kafkas_keys() -> None:
    config = NodeConfig.from_properties(
        PROPERTIES
        | {
            "max.connections": "100",
            "max.connections.per.ip": "10",
            "max.connections.per.ip.overrides": "127.0.0.1:20, ::1:30",
            "max.connection.creation.rate": "5",
            "listener.name.external.max.connections": "7",
            "listener.name.external.max.connection.creation.rate": "3",
            "listener.name.gone.max.connections": "1",
        }
    )
    assert limits_of(config) == LimitsConfig(
        connections_max=100,
        per_address_max=10,
        per_address_overrides={"127.0.0.1": 20, "::1": 30},
        rate=5,
        of_listener_max={"EXTERNAL": 7},
        of_listener_rate={"EXTERNAL": 3},
        node_listeners=frozenset(["CONTROLLER", "PLAINTEXT"]),
    )
    assert config.unknown == {}


def test_the_brokers_listener_is_protected_only_if_clients_have_another_one() -> None:
    one = PROPERTIES | {"listeners": "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:3"}
    assert limits_of(NodeConfig.from_properties(one)).node_listeners == {"CONTROLLER"}


@each(
    ("name", "value", "why"),
    [
        ("max.connections.per.ip.overrides", "10.0.0.1", "expected address:number"),
        ("max.connections.per.ip.overrides", "10.0.0.1:-1", "expected address:number"),
        ("max.connections.per.ip", "0", "can be set to zero only if"),
        ("queued.max.request.bytes", "1000", "greater than or equal to socket.request.max.bytes"),
        ("listener.name.external.max.connections", "-1", "listener.name.external.max.connections: Value must be"),
        ("strandline.queued.response.max.bytes", "0", "Value must be at least"),
    ],
)
def test_limits_that_make_no_sense_are_rejected(name: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        NodeConfig.from_properties(PROPERTIES | {name: value})


def test_a_name_that_nobody_knows_is_reported_at_the_start() -> None:
    config = NodeConfig.from_properties(PROPERTIES | {"max.connections.per.ip.overrides": "no.such.host.invalid:1"})
    with pytest.raises(OSError, match=r"no\.such\.host\.invalid is not known"):
        limits_of(config)


def test_limits_change_while_the_node_runs_for_one_broker_or_for_all() -> None:
    config = NodeConfig.from_properties(PROPERTIES | {"max.connections": "100"})
    it = ConnectionLimits(limits_of(config))
    current = CurrentLimits(config, it)
    of_all = {"max.connections": "50", "max.connections.per.ip.overrides": "10.0.0.1:3,no.such.host.invalid:1"}
    current.update({(BROKER_RESOURCE, ""): of_all})
    assert it.config == limits_of(config), "no name is looked up while the node runs"
    of_all["max.connections.per.ip.overrides"] = "10.0.0.1:3"
    current.update({(BROKER_RESOURCE, ""): of_all, (BROKER_RESOURCE, "1"): {"max.connections.per.ip": "7"}})
    assert (it.config.connections_max, it.config.per_address_max) == (50, 7)
    assert it.config.per_address_overrides == {"10.0.0.1": 3}
    current.update({(BROKER_RESOURCE, "2"): {"max.connections": "1"}})
    assert it.config == limits_of(config)


def test_limits_of_a_listener_change_while_the_node_runs_too() -> None:
    most, rate = "listener.name.external.max.connections", "listener.name.external.max.connection.creation.rate"
    config = NodeConfig.from_properties(PROPERTIES | {most: "7"})
    it = ConnectionLimits(limits_of(config))
    current = CurrentLimits(config, it)
    for configs, expected in (
        ({(BROKER_RESOURCE, ""): {most: "50", rate: "3"}}, ({"EXTERNAL": 50}, {"EXTERNAL": 3})),
        ({(BROKER_RESOURCE, ""): {most: "50"}, (BROKER_RESOURCE, "1"): {most: "20"}}, ({"EXTERNAL": 20}, {})),
        ({(BROKER_RESOURCE, ""): {"listener.name.gone.max.connections": "1"}}, ({"EXTERNAL": 7}, {})),
    ):
        current.update(configs)
        assert (it.config.of_listener_max, it.config.of_listener_rate) == expected


def test_the_rates_of_addresses_are_client_quotas_of_ips_alone() -> None:
    rate = {"connection_creation_rate": 5.0}
    quotas = {
        (("ip", "10.0.0.1"),): rate,
        (("ip", None),): {"connection_creation_rate": 2.0},
        (("user", "u"),): rate,
        (("client-id", "c"), ("ip", "10.0.0.2")): rate,
        (("ip", "10.0.0.3"),): {"request_percentage": 5.0},
    }
    assert address_rates(quotas) == ({"10.0.0.1": 5.0}, 2.0)
    assert address_rates({}) == ({}, None)
    it = limits()
    current = CurrentLimits(NodeConfig.from_properties(PROPERTIES), it)
    current.update_rates(quotas)
    assert (it.address_rates, it.address_rate_default) == ({"10.0.0.1": 5.0}, 2.0)
    assert it.why_refused("10.0.0.1", 0) is None
    current.update_rates(dict(quotas))
    assert it.address_buckets, "what is left of a rate stays"
    current.update_rates({})
    assert (it.address_rates, it.address_rate_default) == ({}, None)


# --- lines of the log


def printed(it: LogLimit, count: int, address: str, at: int = 0, kind: str = "refused connections") -> int:
    return sum(it.may_print(kind, address, at) for _ in range(count))


def test_an_address_gets_ten_lines_a_minute_and_the_rest_is_counted() -> None:
    it = LogLimit()
    assert printed(it, 30_000, "10.0.0.1") == LINES_MAX
    assert printed(it, 3, "10.0.0.2", 30_000) == 3
    assert printed(it, 1, "10.0.0.1", 30_000, "closed connections") == 1
    assert list(it.summaries(SPAN_MS - 1)) == []
    assert list(it.summaries(SPAN_MS)) == ["… and 29,990 more refused connections from 10.0.0.1 in the last 60 s"]
    assert list(it.summaries(SPAN_MS)) == [], "once"
    assert printed(it, 30, "10.0.0.1", SPAN_MS + 1) == LINES_MAX, "another minute"
    assert it.left_out_ever["refused connections"] == 29_990 + 20


def test_many_addresses_fill_neither_the_log_nor_the_memory() -> None:
    it = LogLimit()
    count = 10 * ADDRESSES_MAX
    lines = sum(printed(it, 2, f"10.0.{n // 256}.{n % 256}") for n in range(count))
    assert lines == LINES_OF_KIND_MAX
    assert len(it.left_out) <= ADDRESSES_MAX + 1
    reported = list(it.summaries(SPAN_MS))
    assert len(reported) == SUMMARIES_MAX + 1
    figures = [int(line.split()[2].replace(",", "")) for line in reported]
    assert sum(figures) == 2 * count - lines, "every line was printed or counted"


def test_what_a_client_sends_cannot_write_lines_of_its_own() -> None:
    assert printable("a\nb\x1b[31m\u2028é") == "a?b?[31m?é"
    assert len(printable("x" * 10_000)) == 201


# --- who gives way


def test_clients_that_stopped_to_read_give_way_above_half_of_the_bound_the_largest_first() -> None:
    rows = [SlowReader(1, 10, 0, False), SlowReader(2, 20, 2, False), SlowReader(3, 30, 5, False)]
    assert list(too_slow_to_read(rows, 60, 120)) == []
    assert list(too_slow_to_read(rows, 60, 100)) == [3]
    assert list(too_slow_to_read(rows, 60, 50)) == [3, 2]


def test_above_the_bound_those_that_still_read_give_way_too_and_nodes_last() -> None:
    rows = [SlowReader(1, 40, 0, True), SlowReader(2, 20, 1, False), SlowReader(3, 30, 0, False)]
    assert list(too_slow_to_read(rows, 90, 90)) == []
    assert list(too_slow_to_read(rows, 90, 61)) == [3]
    assert list(too_slow_to_read(rows, 90, 39)) == [3, 2, 1]


def test_the_slowest_frames_give_way_down_to_half_of_the_bound_and_fast_ones_never() -> None:
    rows = [SlowFrame(1, 10, 32 * 1024), SlowFrame(2, 10, 0), SlowFrame(3, 20, 0), SlowFrame(4, 10, 32 * 1024 - 1)]
    assert list(too_slow_to_send(rows, 50, 100)) == []
    assert list(too_slow_to_send(rows, 50, 60)) == [3]
    assert list(too_slow_to_send(rows, 50, 30)) == [3, 2, 4]
    assert list(too_slow_to_send(rows, 50, 10)) == [3, 2, 4]
