"""Where an exception leaves nothing half done.

An interruptible function may end between any two of its statements: what it called before is whole, and what it would
have done next was not begun. Functions that only read are interruptible, and so are those that decide first and then
change state by one call at a time, each of which is a whole. If such calls have returned effects for others,
`Interrupted` carries them. Everything else counts as not interruptible, so a new function is on the safe side.

An exception passed through the functions in its traceback. If all of them are interruptible, nothing is half done. The
table is used only after an exception, so requests do not pay for it.

`tests/unit/broker/faults` raises at the lines that requests run through, and compares the state before and after.
"""

from types import TracebackType

from strandline.base.interrupted import Interrupted

OURS = "strandline."

# Modules that change no state of a node, with all below them: values in, values out, or reading only.
READING = (
    "base",
    "broker.authenticating",  # what it keeps is about one connection, which is closed
    "broker.authorizing",  # what the gate keeps is about the request, which it forgets, or is asked for again
    "broker.config",
    "broker.faults",
    "broker.handlers",
    "broker.refusals",
    "broker.route",
    "controller.acknowledging",
    "controller.basis",
    "controller.brokers.brokers",
    "controller.brokers.directories",
    "controller.configs",
    "controller.features",
    "controller.partition",
    "controller.partitions.elections",
    "controller.partitions.isr",
    "controller.partitions.min_isr",
    "controller.partitions.reassignments",
    "controller.producer_ids",
    "controller.refusals",
    "controller.reports",
    "controller.topics",
    "coordination.partitioning",
    "group.assignors",
    "group.consumer.catalog",
    "group.consumer.describing",
    "group.consumer.draft",
    "group.consumer.ending",
    "group.consumer.member",
    "group.consumer.planning",
    "group.consumer.reconciling",
    "group.consumer.regexes",
    "group.consumer.settings",
    "group.consumer.speaking",
    "group.consumer.stored",
    "group.offsets.topics",
    "group.serving.answers",
    "log.config",
    "log.directory",
    "log.recompress",
    "log.refusals",
    "metadata.acknowledgements",
    "metadata.configs",
    "metadata.features",
    "metadata.fitting",
    "metadata.framing",
    "metadata.losses",
    "metadata.registrations",
    "metadata.strategy",
    "metadata.topic_names",
    "quorum.describing",
    "quorum.messages",
    "replica.serving.hints",
    "replica.serving.transactions.describing",
    "security",
    "txn.client_errors",
    "txn.listing",
    "wire",
)

# Functions of other modules.
FUNCTIONS = {
    "broker.broker": ("Broker.__init__.<locals>.<lambda>",),
    "broker.lifecycle": ("Lifecycle.epoch",),
    "broker.node": (
        "Node.active_controller",
        "Node.applied_end",
        "Node.image",
        "Node.is_controller_listener",
        "Node.next_offset",
        "Node.received",
    ),
    "controller.brokers.heartbeats": ("Heartbeats.has_session", "Heartbeats.is_connected"),
    "controller.controller": (
        "<lambda>",
        "Controller.basis",
        "Controller.is_alive",
        "Controller.serve",
        "Controller.step",
    ),
    "controller.partitions.manual": ("is_manual",),
    "coordination.shards": ("Shards.of",),
    "group.classic.group": ("Group.why_not", "Group.why_not_join"),
    "group.serving.committing": ("Committing.fetch_offsets", "Committing.why_not_commit", "acceptable"),
    "group.consumer.group": (
        "ConsumerGroup.is_subscribed_to",
        "ConsumerGroup.owner_of",
        "ConsumerGroup.state",
        "ConsumerGroup.topics_of",
    ),
    "group.coordinator": (
        "Groups.answer",
        "Groups.describe",
        "Groups.describe_consumers",
        "Groups.described_consumers",
        "Groups.list_groups",
    ),
    "group.classic.joining": ("Joining.why_not",),
    "group.classic.member": ("Member.heard",),
    "group.serving.membership": ("Membership.heartbeat", "left"),
    "group.serving.consumer_heartbeat": (
        "ConsumerHeartbeats.heartbeat",
        "ConsumerHeartbeats.is_proven",
        "ConsumerHeartbeats.plan",
        "ConsumerHeartbeats.session_ms",
        "ConsumerHeartbeats.why_off",
        "ConsumerHeartbeats.group_for",
        "refusal",
        "was_classic",
        "why_invalid",
    ),
    "group.shards.shard": ("Shard.classic", "Shard.consumer", "Shard.knows", "Shard.simple_groups"),
    "group.shards.shards": ("GroupShards.all_groups", "GroupShards.existing", "GroupShards.groups"),
    "group.serving.transactional": ("why_not_commit",),
    "log.epochs": ("Epochs.end_offset_for", "Epochs.end_offset_for.<locals>.<lambda>", "Epochs.latest"),
    "log.log": (
        "Log.append_as_leader",
        "Log.end_offset_for_epoch",
        "Log.last_stable_offset",
        "Log.read",
        "Log.transactions",
        "Log.why_not_in_transaction",
    ),
    "log.tail": ("Tail.read",),
    "metadata.image": (
        "Image.config_in_force",
        "Image.effective_min_isr",
        "Image.is_active",
        "Image.is_online",
        "Image.min_isr",
        "Image.topic_config",
    ),
    "quorum.dispatch": ("received",),
    "quorum.quorum": ("Quorum.step",),
    "replica.hosting.host": ("Host.why_not_leader",),
    "replica.hosting.hosted": ("Hosted.high_watermark", "leader_epoch_error"),
    "replica.hosting.hosted_partitions": ("HostedPartitions.all", "HostedPartitions.named"),
    "replica.replicas": (
        "Replicas.fetch",
        "Replicas.list_offsets",
        "Replicas.offsets_for_leader_epoch",
        "Replicas.produce",
    ),
    "replica.serving.fetching": ("Fetching.fetch",),
    "replica.serving.offsets": (
        "Offsets.end_of",
        "Offsets.leader_of",
        "Offsets.list_offsets",
        "Offsets.offset_of",
        "Offsets.offsets_for_leader_epoch",
        "Offsets.role_of",
    ),
    "replica.serving.producing": (
        "ParkedProduce.__init__",
        "ParkedProduce.answers",
        "ParkedProduce.refuse",
        "ParkedProduce.response",
        "Part.__init__",
        "Producing.elsewhere",
        "Producing.must_hold",
        "Producing.produce",
        "Producing.produce_one",
        "Producing.with_endpoints",
        "Producing.write",
        "called",
        "has_zstd",
        "refusal",
        "too_old",
    ),
    "replica.serving.reading": (
        "Reading.closer",
        "Reading.collect",
        "Reading.decided",
        "Reading.not_here",
        "Reading.read",
        "Reading.refusal",
        "Reading.why_not_read",
        "is_news",
        "out_of_range",
        "served",
    ),
    "replica.storage.cordoned": ("cordoned",),
    "txn.adding": (
        "Adding.add_partitions",
        "Adding.exists",
        "Adding.unknown",
        "Adding.verify",
        "partitions_of",
        "results",
    ),
    "txn.coordinator": ("Transactions.answer",),
    "txn.ending": ("judge", "judge_old", "is_before_end"),
    "txn.shards": ("TxnShards.entry_of", "TxnShards.of"),
}

COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")


def half_done_in(error: BaseException) -> str | None:
    """The first function that may have left its work half done. None: there is none."""
    at = error.__traceback__
    while at is not None:
        name = half_done_at(at)
        if name is not None:
            return name
        at = at.tb_next
    if isinstance(error, Interrupted) and error.__cause__ is not None:
        return half_done_in(error.__cause__)
    return None


def half_done_at(at: TracebackType) -> str | None:
    frame = at.tb_frame
    module = frame.f_globals.get("__name__", "")  # compiled codecs have none
    if not module.startswith(OURS):
        return None
    function = function_of(frame.f_code.co_qualname)
    module = module.removeprefix(OURS)
    return None if is_interruptible(module, function) else f"{module}.{function}"


def is_interruptible(module: str, function: str) -> bool:
    if any(module == one or module.startswith(f"{one}.") for one in READING):
        return True
    return function in FUNCTIONS.get(module, ())


def function_of(qualname: str) -> str:
    """A comprehension is part of the function that it stands in."""
    outer, _, inner = qualname.rpartition(".<locals>.")
    return function_of(outer) if inner in COMPREHENSIONS else qualname
