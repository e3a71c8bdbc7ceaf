"""What can go wrong between a client and a cluster, as exceptions that say where.

A broker's refusal that passes by itself (no leader yet, a connection that broke) is tried again within the configured
times and never seen here. What is raised is for the caller to decide about, or for a user to read.
"""

from strandline.base.errors import ErrorCode, error_of, is_retriable, message_of


class StrandlineError(Exception):
    """`problem` says what is wrong and where, `advice` what to do next. Crosses Spark's processes as text."""

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(problem, advice)
        self.problem = problem
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.problem}\n  {self.advice}" if self.advice else self.problem


class BadOption(StrandlineError):
    """An option, or a set of them, that makes no sense."""


class KafkaError(StrandlineError):
    """A broker refused something. `code` is Kafka's."""

    def __init__(self, code: int, problem: str, advice: str = "") -> None:
        super().__init__(problem, advice)
        self.code = error_of(code)

    def __reduce__(self) -> tuple[object, ...]:
        return rebuilt, (type(self), self.args, self.__dict__)


def rebuilt(cls: type[KafkaError], args: tuple[object, ...], state: dict[str, object]) -> KafkaError:
    """An error from its pickled form: subclasses differ in what they are made of."""
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


def refused(code: int, what: str, message: str | None = None) -> KafkaError:
    """`what` was refused, with the broker's own words if it sent some."""
    known = error_of(code)
    return KafkaError(known, f"{what}: {known.name}: {message or message_of(known)}")


def passes_by_itself(error: KafkaError) -> bool:
    """Is it worth trying again? What has a class of its own is final, but for a broker that is not reached."""
    return isinstance(error, Unreachable) or (type(error) is KafkaError and is_retriable(error.code))


class Unreachable(KafkaError):
    """No connection, or no answer in time."""

    def __init__(self, problem: str, advice: str = "", cause: Exception | None = None) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, problem, advice)
        self.cause = cause  # what the socket, or the decoder, raised


class TimedOut(KafkaError):
    """What was tried again and again did not succeed in time; the message names the last refusal."""

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, problem, advice)


class AuthenticationFailed(KafkaError):
    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(ErrorCode.SASL_AUTHENTICATION_FAILED, problem, advice)


class Unsupported(KafkaError):
    """The cluster lacks an API, or has no version of it that we speak."""

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, problem, advice)


class UnknownTopic(KafkaError):
    """No such topic, or no such partition of it."""

    def __init__(self, topic: str, partition: int | None = None) -> None:
        what = f"topic {topic}" if partition is None else f"partition {topic}-{partition}"
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{what} does not exist")
        self.topic = topic
        self.partition = partition


class TopicIdChanged(KafkaError):
    """The topic was deleted, and another one of the same name was created. Ids are Kafka's text form."""

    def __init__(self, topic: str, expected: str, found: str) -> None:
        super().__init__(
            ErrorCode.INCONSISTENT_TOPIC_ID,
            f"topic {topic} is not the one that was read before: it was deleted and created anew"
            f" (topic id {expected}, now {found})",
        )
        self.topic = topic
        self.expected = expected
        self.found = found


class OffsetOutOfRange(KafkaError):
    """The log does not have the offset. `log_start_offset` and `high_watermark` say what it has; −1: not known."""

    def __init__(self, topic: str, partition: int, offset: int, log_start_offset: int, high_watermark: int) -> None:
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{topic}-{partition} does not have offset {offset}: its log begins at {log_start_offset}"
            f" and ends at {high_watermark}",
        )
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark


class LogTruncated(KafkaError):
    """The log was cut below an offset that had been read: what was read there is gone, other records may follow.

    `diverging_epoch` and `end_offset`: the last epoch up to the asked one that the log has, and where it ends.
    """

    def __init__(
        self, topic: str, partition: int, offset: int, leader_epoch: int, diverging_epoch: int, end_offset: int
    ) -> None:
        super().__init__(
            ErrorCode.FENCED_LEADER_EPOCH,
            f"the log of {topic}-{partition} was truncated: it had offset {offset} of leader epoch {leader_epoch},"
            f" but epoch {diverging_epoch} ends at {end_offset} now",
        )
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.diverging_epoch = diverging_epoch
        self.end_offset = end_offset


class CorruptRecords(KafkaError):
    """What a broker sends for an offset begins with no batch that we can read. `size`: of all that it sent."""

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        broker: int,
        *,
        is_old: bool,
        size: int,
        log_start_offset: int,
        high_watermark: int,
    ) -> None:
        why = "formats 0 and 1 are not supported" if is_old else "they are damaged: no batch begins there"
        super().__init__(
            ErrorCode.CORRUPT_MESSAGE,
            f"the records of {topic}-{partition} at offset {offset} on broker {broker} cannot be read: {why}",
            "copy them into a new topic with a client that knows the old formats"
            if is_old
            else "`strandline pipeline audit` shows which replicas are undamaged",
        )
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.size = size
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark


class ProduceFailed(KafkaError):
    """A batch was not written, or nobody knows (`maybe_written`)."""

    def __init__(
        self,
        code: int,
        topic: str,
        partition: int,
        what: str,
        *,
        records: tuple[int, ...] = (),
        count: int = 0,
        maybe: bool = False,
        tag: object = None,
    ) -> None:
        super().__init__(code, f"cannot write to {topic}-{partition}: {what}")
        self.topic = topic
        self.partition = partition
        self.records = records  # those of the batch that are to blame, counted from 0
        self.count = count  # how many the batch has
        self.maybe_written = maybe
        self.tag = tag  # the sender's
