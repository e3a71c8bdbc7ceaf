"""Everything that a run can vary, drawn from the seed.

Swarm testing: each seed leaves out some kinds of faults, so that others come in numbers that they would not reach
together.
"""

from random import Random

from strandline.base.value import Value
from strandline.metadata.configs.node_configs import STANDARD_AUTHORIZER
from strandline.sim.world.network import Weather

IMPATIENT = {  # the dead are noticed in seconds
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "controller.quorum.election.timeout.ms": "600",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "300",
    "controller.quorum.request.timeout.ms": "1000",
}
BASE_SETTINGS = {
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "auto.create.topics.enable": "false",
    **IMPATIENT,
    "leader.imbalance.check.interval.seconds": "4",
}
CHOICES: dict[str, tuple[str, ...]] = {
    "replica.lag.time.max.ms": ("1", *("500", "1000", "2000", "2000", "4000") * 3),
    "replica.fetch.wait.max.ms": ("20", "50", "200", "200", "500"),
    "replica.fetch.backoff.ms": ("50", "300", "300", "1000"),
    "replica.fetch.max.bytes": ("1", "1", "200", "1048576", "1048576"),  # 1: one batch per fetch
    "replica.fetch.response.max.bytes": ("1", "500", "10485760", "10485760"),
    "replica.high.watermark.checkpoint.interval.ms": ("100", "700", "700", "5000"),
    "log.flush.offset.checkpoint.interval.ms": ("300", "1300", "1300", "60000"),
    "metadata.log.max.record.bytes.between.snapshots": ("1", "1500", "1500", "10000", "20971520"),
    "log.roll.ms": ("300", "3000", "3000", "3600000"),
    "log.index.interval.bytes": ("0", "100", "4096", "4096"),
    "log.retention.check.interval.ms": ("200", "1000", "1000"),
    "metadata.max.idle.interval.ms": ("100", "500", "500"),
}
SUPER_USERS = ("User:admin", "User:permitter")  # those who create topics, and permit others what they do
GUARDED = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": ";".join(SUPER_USERS)}
SEGMENT_BYTES = ("1024", "1024", "4096", "1048576", "1048576")


class Options(Value, frozen=True):
    brokers: int = 3
    controllers: int = 3  # the first brokers; others are brokers alone
    replication_factor: int = 3
    min_isr: int = 2
    log_dirs: int = 1
    racks: int = 0  # 0: nobody says where it is
    segment_bytes: str = "1048576"
    settings: dict[str, str] = {}  # noqa: RUF012  # a Value copies it
    own_settings: dict[int, dict[str, str]] = {}  # noqa: RUF012  # a Value copies it; of single nodes; only written plans have some
    weather: Weather = Weather()
    drift_ppm: int = 0  # clocks run this much too fast or too slow, at most
    clock_step_ms: int = 0  # and stand this far off after a restart, at most
    sync_ms: int = 4
    slow_sync_ms: int = 100
    cold_percent: int = 0  # of what a Fetch would read from files is not cached
    cold_ms: int = 200  # until it is, at most
    step_records: int = 0  # of metadata that a node applies at once; 0: as many as it does by itself
    check_every: int = 16  # events between two checks of a node's own invariants
    is_ruthless: bool = False  # data may be lost anywhere at any time, not only where that must be survived
    faults: tuple[str, ...] = ()  # the kinds that may come
    pause_ms: int = 500  # between two faults, on average
    span_ms: int = 20_000  # of the unsafe phase
    pace_ms: int = 30  # between two batches of one producer, on average
    workloads: tuple[str, ...] = ()
    stranger_ms: int = 0  # between two hostile messages of one who belongs to no cluster; 0: there is none
    authorizer: bool = False  # nobody but a node and the users below may do anything that no ACL allows
    permissions_ms: int = 0  # between two changes of the ACLs, on average
    intruder_ms: int = 0  # between two forged messages of one who does not know the cluster's secret; 0: there is none
    elr: bool = False  # with Eligible Leader Replicas; plans of before they were simulated say nothing, and go on so


def properties(options: Options) -> dict[str, str]:
    """The configuration that all nodes share."""
    voters = ",".join(f"{n}@n{n}:9093" for n in range(1, options.controllers + 1))
    return {
        **BASE_SETTINGS,
        "controller.quorum.voters": voters,
        "log.dirs": ",".join(f"/d{n}" for n in range(options.log_dirs)),
        "default.replication.factor": str(options.replication_factor),
        "offsets.topic.replication.factor": str(options.replication_factor),
        "transaction.state.log.replication.factor": str(options.replication_factor),
        "transaction.state.log.min.isr": str(options.min_isr),
        "min.insync.replicas": str(options.min_isr),
        "eligible.leader.replicas.enabled": str(options.elr).lower(),
        **(GUARDED if options.authorizer else {}),
        **options.settings,
    }


def draw_options(rng: Random, faults: tuple[str, ...], workloads: tuple[str, ...]) -> Options:
    brokers = rng.choice((3, 3, 3, 3, 4, 5))
    replication_factor = rng.choice((3, 3, 3, 4, 5)[: brokers + 1]) if brokers > 3 else 3
    is_stormy = rng.randrange(3) == 0
    kept = [kind for kind in faults if rng.randrange(4)]
    settings = {key: rng.choice(values) for key, values in CHOICES.items()}
    wait, lag = "replica.fetch.wait.max.ms", "replica.lag.time.max.ms"
    settings[wait] = str(min(int(settings[wait]), int(settings[lag])))  # else the configuration is refused
    is_hectic = settings[lag] == "1"  # then followers ask every millisecond
    pace = rng.choice((15, 30, 30, 100))
    if "1" in (settings["replica.fetch.max.bytes"], settings["replica.fetch.response.max.bytes"]):
        pace = 100  # more than one batch per fetch would be more than followers can take, for ever
    return Options(
        brokers=brokers,
        controllers=3,
        replication_factor=min(replication_factor, brokers),
        min_isr=2 if replication_factor < 5 else rng.choice((2, 3)),
        log_dirs=rng.choice((1, 1, 2)),
        segment_bytes=rng.choice(SEGMENT_BYTES),
        settings=settings,
        weather=Weather(
            latency_ms=rng.choice((1, 3, 3, 10)),
            lost_permille=rng.choice((0, 0, 3, 20)) if is_stormy else 0,
            duplicated_permille=rng.choice((0, 0, 10, 50)) if is_stormy else 0,
        ),
        drift_ppm=rng.choice((0, 0, 200, 20_000)),
        clock_step_ms=rng.choice((0, 0, 50, 5000)),
        sync_ms=rng.choice((1, 4, 4, 20)),
        slow_sync_ms=rng.choice((0, 100, 100, 1500)),
        is_ruthless=rng.randrange(4) == 0,
        faults=tuple(kept) or faults[:1],
        pause_ms=rng.choice((150, 300, 500, 500, 1000)),
        span_ms=4000 if is_hectic else rng.choice((5000, 6000, 8000, 8000, 12_000)),
        pace_ms=pace,
        workloads=("orders", *[name for name in workloads if name != "orders" and rng.randrange(3)]),
    )
