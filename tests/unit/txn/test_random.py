"""Two clients of one transactional id, time, lost answers and failovers in any order: what a coordinator never does.

- a marker is sent only for a decision that is committed; all partitions of a transaction get the same
- a decision that was answered is not changed, and is the one that the markers bear
- epochs never move back, and no two clients are given the same one
- whatever happened, the transaction comes to its end, and a new producer can begin
"""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.txn.coordination import T0, T1, U0, Coordination, add_request, end_request, init_request

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition
from strandline.txn.states import COMPLETE, DECIDED, State
from strandline.txn.transaction import EPOCH_LAST
from strandline.wire.messages.transactions.transaction_records import decode_value
from strandline.wire.record import all_records

PARTITIONS = (T0, T1, U0)

steps = st.lists(
    st.one_of(
        st.tuples(st.just("init"), st.integers(0, 1), st.booleans()),
        st.tuples(st.just("add"), st.integers(0, 1), st.integers(0, 2)),
        st.tuples(st.just("add"), st.integers(0, 1), st.integers(0, 2)),
        st.tuples(st.just("end"), st.integers(0, 1), st.booleans()),
        st.tuples(st.just("end"), st.integers(0, 1), st.booleans()),
        st.tuples(st.just("again"), st.integers(0, 1), st.just(0)),
        *[st.tuples(st.just("commit"), st.just(0), st.just(0))] * 8,
        st.tuples(st.just("refuse"), st.just(0), st.just(0)),
        *[st.tuples(st.just("markers"), st.just(0), st.just(0))] * 3,
        st.tuples(st.just("lose"), st.just(0), st.just(0)),
        st.tuples(st.just("wait"), st.sampled_from([30, 1_500, 80_000]), st.just(0)),
        st.tuples(st.just("fail over"), st.just(0), st.just(0)),
        st.tuples(st.just("move"), st.integers(0, 2), st.integers(1, 2)),
    ),
    min_size=20,
    max_size=60,
)


class Client:
    def __init__(self, number: int) -> None:
        self.number = number
        self.producer = (-1, -1)
        self.last_end: tuple[tuple[int, int], bool] | None = None
        self.open: dict[int, tuple[str, object]] = {}  # requests that are not answered


class Play:
    def __init__(self) -> None:
        self.c = Coordination()
        self.clients = [Client(0), Client(1)]
        self.given: dict[tuple[int, int], int] = {}  # to which client an id and epoch were given
        self.said: dict[tuple[int, int], bool] = {}  # what EndTxn of this id and epoch was answered to have done

    def step(self, what: str, one: int, two: int) -> None:
        c, client = self.c, self.clients[one % 2]
        match what:
            case "init":
                producer = client.producer if two else (-1, -1)
                client.open[c.send(init_request(producer), 5)] = ("init", producer)
            case "add" if client.producer[0] >= 0:
                c.send(add_request(client.producer, PARTITIONS[two]), 5)
            case "end" if client.producer[0] >= 0:
                client.last_end = client.producer, bool(two)
                client.open[c.send(end_request(client.producer, commits=bool(two)), 5)] = ("end", client.last_end)
            case "again" if client.last_end is not None:
                producer, commits = client.last_end
                client.open[c.send(end_request(producer, commits=commits), 5)] = ("end", client.last_end)
            case "commit" if c.log.under_way:
                c.commit_one()
            case "refuse" if c.log.under_way:
                c.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
            case "markers" if c.sent:
                c.write_markers()
            case "lose" if c.sent:
                c.lose_markers()
            case "wait":
                c.wait(one)
            case "fail over":
                c.fail_over()
            case "move":
                c.lead(PARTITIONS[one], two)
        self.look()

    def look(self) -> None:
        for client in self.clients:
            for number, (kind, about) in list(client.open.items()):
                if number not in self.c.answers:
                    continue
                del client.open[number]
                answer = self.c.answers[number]
                if answer.error_code != ErrorCode.NONE:
                    continue
                got = answer.producer_id, answer.producer_epoch
                if kind == "end":
                    assert isinstance(about, tuple)
                    producer, commits = about
                    assert self.said.setdefault(producer, commits) == commits, "a decision changes"
                    client.producer = max(client.producer, got) if client.producer[0] == got[0] else got
                else:
                    assert self.given.setdefault(got, client.number) == client.number or about == got
                    client.producer = got
        self.laws()

    def laws(self) -> None:
        decided: dict[tuple[int, int], tuple[bool, set[TopicPartition]]] = {}
        last = (-1, -1)
        for batch in self.c.log.batches:
            for record in all_records(batch):
                value = decode_value(record.value)
                if value is None:
                    continue
                now = value.producer_id, value.producer_epoch
                assert now[0] != last[0] or now[1] >= last[1], "an epoch moves back"
                last = now
                state = State(value.transaction_status)
                if state in DECIDED:
                    rows = value.transaction_partitions or ()
                    partitions = {TopicPartition(r.topic, i) for r in rows for i in r.partition_ids}
                    commits = state is State.PREPARE_COMMIT
                    assert decided.setdefault(now, (commits, partitions)) == (commits, partitions), "decided twice"
                elif state in COMPLETE:
                    ended = (value.previous_producer_id, EPOCH_LAST + 1) if value.producer_epoch == 0 else now
                    has = {at for producer_id, epoch, _, at, _ in self.c.markers if (producer_id, epoch) == ended}
                    assert decided[ended][1] <= has, "complete without a marker"
        for producer_id, epoch, commits, at, _ in self.c.markers:
            assert (producer_id, epoch) in decided, "a marker without a decision"
            assert decided[producer_id, epoch][0] == commits, "a marker that says something else"
            assert at in decided[producer_id, epoch][1], "a marker where nothing was written"
        for (producer_id, epoch), commits in self.said.items():
            if (producer_id, epoch + 1) in decided:
                assert decided[producer_id, epoch + 1][0] == commits, "the client was told something else"


@settings(max_examples=600, deadline=None)
@given(steps)
def test_decisions_markers_and_epochs_keep_the_laws(script: list[tuple[str, int, int]]) -> None:
    play = Play()
    for step in script:
        play.step(*step)
    c = play.c
    for _ in range(10):
        c.complete()
        c.wait(100)
        number = c.send(init_request(), 5)
        c.complete()
        got = c.answers[number]
        if got.error_code == ErrorCode.NONE:
            break
    play.look()
    producer = got.producer_id, got.producer_epoch
    assert c.add(producer, T0, U0) == [ErrorCode.NONE] * 2
    assert c.end(producer).error_code == ErrorCode.NONE
    c.complete()
    play.laws()
    assert c.current.state is State.COMPLETE_COMMIT
    assert [row[3] for row in c.markers if row[:2] == (producer[0], producer[1] + 1)] == [T0, U0]


@settings(max_examples=60, deadline=None)
@given(steps, st.integers(0, 4))
def test_the_laws_hold_where_epochs_run_out(script: list[tuple[str, int, int]], room: int) -> None:
    play = Play()
    play.c.init()
    shard = play.c.transactions.shards.loaded[0]
    entry = shard.entries["id"]
    assert entry.current is not None
    near = entry.current.initialized(60_000, play.c.current.updated_at, is_known=False)
    near = type(near)(**{**{f: getattr(near, f) for f in near.__struct_fields__}, "epoch": EPOCH_LAST - room})
    play.c.take(play.c.transactions.shards.write(shard, entry, near, near.updated_at, lambda error, now: []))
    play.c.commit()
    for step in script:
        play.step(*step)
    assert play.c.current.epoch <= EPOCH_LAST + 1
