"""The plugin in sessions of pytest of its own: nodes that many tests share, names apart, and what a failure shows."""

import subprocess
import sys

import pytest

from strandline.testing.apart import prefix_of

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
# By its module's name: whether this environment has the entry point depends on when strandline was installed.
PLUGIN = ("-p", "no:strandline", "-p", "strandline.testing.plugin", "-p", "no:cacheprovider")

SHARED = """
import pytest

PIDS = set()

@pytest.fixture(autouse=True)
def pids(request):
    if "strandline" in request.fixturenames:
        strandline = request.getfixturevalue("strandline")
        PIDS.update(node.pid for node in strandline.nodes.relayed)

def test_a_topic_has_the_name_of_its_test(strandline):
    assert strandline.create_topic("orders", partitions=3) == "test-a-topic-has-the-name-of-its-test-1-orders"
    assert strandline.topics() == [strandline.name("orders")]
    assert strandline.leader("orders", 2) in strandline.node_ids == [1, 2, 3]

@pytest.mark.parametrize("number", [1, 2])
def test_the_same_name_is_another_topic_in_each_test(strandline, number):
    assert strandline.topics() == []
    strandline.create_topic("orders")
    assert strandline.requests() == []

@pytest.mark.strandline(exact_names=True)
@pytest.mark.parametrize("number", [1, 2])
def test_exact_names_are_free_again_in_the_next_test(strandline, number):
    from confluent_kafka import Consumer, TopicPartition
    assert strandline.create_topic("orders") == "orders"
    reader = Consumer(strandline.client_config(group_id="billing"))
    where = TopicPartition("orders", 0)
    assert reader.committed([where], 10)[0].offset < 0
    where.offset = 0
    reader.commit(offsets=[where], asynchronous=False)
    reader.close()

def test_nodes_are_started_once():
    assert len(PIDS) == 3

def test_a_test_leaves_faults_and_rules(strandline):
    strandline.slow(1)
    strandline.kill(2)
    strandline.fail_next("Metadata", "LEADER_NOT_AVAILABLE", times=None)

def test_the_next_one_finds_neither(strandline):
    assert strandline.why_not_healthy() == ""
    assert not any(rule.left for rule in strandline.relays.rules.rules)

@pytest.mark.parametrize("nodes", [2])
def test_a_cluster_has_one_three_or_five_nodes(strandline_cluster, nodes):
    with pytest.raises(ValueError, match="1, 3 or 5"):
        strandline_cluster(nodes=nodes)
"""
FAILING = """
def test_it_fails(strandline_cluster):
    strandline = strandline_cluster(nodes=1, config={"num.partitions": 7})
    strandline.create_topic("orders")
    strandline.kill(1)
    raise AssertionError("as it should")

def test_the_next_one_has_the_same_node_in_health(strandline_cluster):
    strandline = strandline_cluster(nodes=1, config={"num.partitions": 7})
    assert strandline.why_not_healthy() == ""
"""
CHEAP = """
import sys

def test_nothing_of_strandline_is_loaded():
    assert [name for name in sys.modules if name.startswith("strandline.")] == [
        "strandline.base", "strandline.testing", "strandline.testing.plugin"
    ]
"""


def test_tests_share_nodes_and_nothing_else(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SHARED)
    result = pytester.runpytest_subprocess(*PLUGIN, "--strict-markers", timeout=150)
    result.assert_outcomes(passed=9)


def test_a_failure_shows_what_is_wrong_and_what_the_nodes_logged(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FAILING)
    result = pytester.runpytest_subprocess(*PLUGIN, timeout=150)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*the cluster is not healthy*",
            "node 1 does not run",
            "*log of node 1*",
            "*INFO topic test-it-fails-1-orders*",
        ]
    )


def test_each_worker_of_xdist_has_its_own_nodes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_one_node(strandline_cluster, number, worker_id):
            strandline = strandline_cluster(nodes=1)
            strandline.create_topic("orders")
            assert strandline.bootstrap.startswith("127.0.0.1:")
            open(f"{worker_id}-{strandline.nodes.node(1).pid}", "w").close()
        """
    )
    result = pytester.runpytest_subprocess(*PLUGIN, "-p", "xdist", "-n", "2", timeout=150)
    result.assert_outcomes(passed=4)
    found = [path.name.split("-") for path in pytester.path.glob("gw*-*")]
    assert len({pid for _, pid in found}) == len({worker for worker, _ in found}) == 2


def test_a_session_without_clusters_loads_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(CHEAP)
    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)


def test_names_exported_by_the_package_are_loaded_when_they_are_used() -> None:
    script = "import sys, strandline.testing as t; assert 'asyncio' not in sys.modules; t.cluster, t.Cluster"
    subprocess.run([sys.executable, "-c", script], check=True)
    with pytest.raises(ImportError):
        from strandline.testing import clusterr  # type: ignore[attr-defined]  # noqa: F401  # it is not there


@pytest.mark.parametrize(
    ("test", "prefix"),
    [("test_orders[a b-€]", "test-orders-a-b-7-"), ("x" * 100, f"{'x' * 60}-7-"), ("test.a_b", "test-a-b-7-")],
)
def test_a_prefix_has_letters_digits_and_hyphens(test: str, prefix: str) -> None:
    assert prefix_of(test, 7) == prefix
