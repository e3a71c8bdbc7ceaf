"""A decision comes to every partition of the transaction, whatever fails (KIP-98, KIP-890)."""

from tests.rows import each
from tests.unit.txn.world import ID, T0, T1, U0, World, add_request, end_request, init_request

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import TopicPartition
from strandline.metadata.records import BrokerRegistrationChangeRecord
from strandline.txn.states import State


def decided(*wanted: TopicPartition, commits: bool = True) -> World:
    w = World()
    w.end(w.begun(*wanted), commits=commits)
    return w


def test_each_leader_is_asked_once_for_all_of_its_partitions() -> None:
    w = decided(T0, T1, U0)
    assert [sent.node for sent in w.sent] == [1, 2]
    topics = w.sent[0].message.markers[0].topics
    assert [(topic.name, topic.partition_indexes) for topic in topics] == [("t", (0,)), ("u", (0,))]


def test_a_marker_says_by_which_rules_and_by_whom_it_was_decided() -> None:
    w = decided(T0)
    marker = w.sent[0].message.markers[0]
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (100, 1, True)
    assert (marker.coordinator_epoch, marker.transaction_version) == (0, 2)


def test_a_transaction_is_complete_when_its_last_marker_is_written() -> None:
    w = decided(T0, T1)
    w.write_markers()
    assert w.commit() == 0
    assert w.current().state is State.PREPARE_COMMIT
    w.write_markers()
    w.commit()
    assert w.current().state is State.COMPLETE_COMMIT
    assert not w.transactions.markers.decisions


def test_what_one_broker_waits_for_goes_in_one_request() -> None:
    w = World()
    producers = {}
    for name in ("a", "b", "c"):
        producers[name] = w.start(name)
    for name, producer in producers.items():
        w.ask(add_request(producer, T0, old=True, name=name), 3)
    for name, producer in producers.items():
        w.ask(end_request(producer, name=name), 4)
    assert len(w.sent) == 1, "one request at a time"
    w.write_markers()
    assert [len(sent.message.markers) for sent in w.sent] == [2]
    w.run_until_idle()
    assert {w.current(name).state for name in producers} == {State.COMPLETE_COMMIT}


@each(
    "error",
    [
        E.NOT_LEADER_OR_FOLLOWER,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.REQUEST_TIMED_OUT,
        E.KAFKA_STORAGE_ERROR,
        E.TRANSACTION_COORDINATOR_FENCED,
        E.UNKNOWN_SERVER_ERROR,
    ],
)
def test_a_marker_that_is_refused_is_sent_again(error: E) -> None:
    w = decided(T0, U0)
    w.write_markers(error, of=U0)
    assert not w.sent, "not at once"
    w.wait(50)
    topics = w.sent[0].message.markers[0].topics
    assert [(topic.name, topic.partition_indexes) for topic in topics] == [("u", (0,))], "what has its marker is done"
    w.run_until_idle()
    assert w.current().state is State.COMPLETE_COMMIT


def test_a_partition_that_has_a_later_epoch_has_had_its_marker() -> None:
    w = decided(T0)
    w.write_markers(E.INVALID_PRODUCER_EPOCH)
    w.run_until_idle()
    assert w.current().state is State.COMPLETE_COMMIT


def test_a_request_that_is_lost_is_sent_again() -> None:
    w = decided(T0)
    w.lose_request()
    w.wait(50)
    w.run_until_idle()
    assert [row[0] for row in w.written] == [T0]


def test_a_broker_that_does_not_answer_holds_up_no_other() -> None:
    w = decided(T0, T1)
    stuck = w.sent.pop(0)
    w.write_markers()
    assert [row[0] for row in w.written] == [T1]
    w.init(name="other")
    other = w.current("other").client
    w.ask(add_request(other, T1, old=True, name="other"), 3)
    w.ask(end_request(other, name="other"), 4)
    w.run_until_idle()
    assert w.current("other").state is State.COMPLETE_COMMIT
    w.sent.append(stuck)
    w.run_until_idle()
    assert w.current().state is State.COMPLETE_COMMIT


def test_markers_follow_a_leader_that_moves() -> None:
    w = decided(T0)
    w.move(T0, 2)
    w.write_markers(E.NOT_LEADER_OR_FOLLOWER)
    w.wait(50)
    assert [sent.node for sent in w.sent] == [2]


def test_a_partition_without_a_leader_is_waited_for() -> None:
    w = World()
    producer = w.begun(T0)
    w.move(T0, -1)
    w.end(producer)
    assert not w.sent
    w.wait(1_000)
    assert w.current().state is State.PREPARE_COMMIT
    w.move(T0, 2)
    assert [sent.node for sent in w.sent] == [2]


def test_a_broker_that_is_fenced_is_not_asked() -> None:
    w = World()
    producer = w.begun(T0)
    w.change(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=1))
    w.end(producer)
    w.wait(200)
    assert not w.sent
    w.change(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=-1))
    assert [sent.node for sent in w.sent] == [1]


def test_a_deleted_topic_needs_no_marker() -> None:
    w = decided(T0, T1, U0)
    w.delete("t")
    while w.sent:
        w.write_markers(E.UNKNOWN_TOPIC_OR_PARTITION, of=T0)
        w.wait(50)
        w.commit()
    assert w.current().state is State.COMPLETE_COMMIT


def test_a_transaction_of_deleted_topics_only_is_complete_at_once() -> None:
    w = World()
    producer = w.begun(T0, T1)
    w.delete("t")
    w.end(producer)
    w.commit()
    assert w.current().state is State.COMPLETE_COMMIT
    assert not w.sent


def test_a_completion_that_is_not_written_is_written_again() -> None:
    w = decided(T0)
    w.write_markers()
    w.fail(E.NOT_ENOUGH_REPLICAS)
    assert w.current().state is State.PREPARE_COMMIT
    w.wait(50)
    w.commit()
    assert w.current().state is State.COMPLETE_COMMIT
    assert len(w.written) == 1


def test_nothing_is_sent_or_kept_for_an_id_that_another_broker_coordinates() -> None:
    w = decided(T0, T1)
    w.lead(None)
    assert not w.transactions.markers.decisions
    w.write_markers(E.NOT_LEADER_OR_FOLLOWER)
    w.lose_request()
    w.wait(1_000)
    assert not w.sent and not w.log.under_way


@each("commits", [True, False])
def test_a_new_coordinator_goes_on_with_what_was_decided(commits: bool) -> None:
    w = decided(T0, T1, commits=commits)
    w.write_markers()
    w.sent.clear()
    w.transactions.markers.under_way.clear()
    w.lead(7)
    w.run_until_idle()
    assert [row[0] for row in w.written] == [T0, T0, T1], "it does not know which were written"
    assert {row[3] for row in w.written} == {commits}
    assert {row[4] for row in w.written[1:]} == {7}
    assert w.current().state is (State.COMPLETE_COMMIT if commits else State.COMPLETE_ABORT)


def test_an_answer_to_the_coordinator_that_this_broker_was_before_completes_nothing() -> None:
    w = decided(T0)
    w.lead(1)
    assert len(w.sent) == 1, "one request at a time"
    w.write_markers()
    assert w.commit() == 0
    w.run_until_idle()
    assert w.written[-1][4] == 1
    assert w.current().state is State.COMPLETE_COMMIT


def test_who_waited_for_another_coordinator_is_sent_away() -> None:
    w = decided(T0)
    number = w.send(init_request())
    w.lead(None)
    assert w.answers[number].error_code == E.NOT_COORDINATOR
    assert ID not in {name for shard in w.transactions.shards.loaded.values() for name in shard.entries}


def test_a_broker_that_has_refused_something_waits_though_others_answer() -> None:
    w = decided(T0, T1)
    w.write_markers(E.NOT_ENOUGH_REPLICAS)
    w.write_markers()
    assert not w.sent, "two brokers that refuse would be asked in turn, without a pause"
    w.wait(50)
    assert [sent.node for sent in w.sent] == [1]


def test_a_decision_costs_what_it_has_and_not_what_others_wait_for() -> None:
    w = World()
    asked: list[TopicPartition] = []
    names = [f"id{number}" for number in range(50)]
    producers = {name: w.start(name) for name in names}
    for name, producer in producers.items():
        w.ask(add_request(producer, T0, old=True, name=name), 3)
    leader_of = w.transactions.markers.leader_of
    w.transactions.markers.leader_of = lambda at: asked.append(at) or leader_of(at)  # type: ignore[method-assign,func-returns-value]
    for name, producer in producers.items():
        w.ask(end_request(producer, name=name), 4)
    assert len(asked) == len(names)
    w.run_until_idle()
    assert len(asked) == len(names)
