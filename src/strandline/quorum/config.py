"""How patient the quorum is, and how much it puts into one message. Defaults are Kafka's (controller.quorum.*)."""

from strandline.base.value import Value
from strandline.metadata.framing import BATCH_BYTES_MAX

MIB = 1 << 20


class QuorumConfig(Value, frozen=True):
    election_timeout_ms: int = 1000  # a nominee waits this long for votes; up to twice that, drawn at random
    fetch_timeout_ms: int = 2000  # a follower doubts a leader that has not answered a Fetch for so long
    election_backoff_max_ms: int = 1000  # after a lost election
    request_timeout_ms: int = 2000
    fetch_wait_ms_max: int = 500  # how long a leader may park a Fetch that finds nothing new
    fetch_bytes_max: int = 8 * MIB  # of one Fetch answer; a larger batch travels alone
    batch_bytes_max: int = BATCH_BYTES_MAX  # of what a leader appends at once
    snapshot_chunk_bytes_max: int = MIB  # of one FetchSnapshot answer
    snapshot_bytes_max: int = 4096 * MIB  # a snapshot larger than this is not downloaded

    def __post_init__(self) -> None:
        assert self.fetch_bytes_max > 0 and self.snapshot_chunk_bytes_max > 0, "each answer gets on"
        assert self.batch_bytes_max > 0
        assert self.election_timeout_ms >= 0 and self.fetch_timeout_ms >= 0 and self.election_backoff_max_ms >= 0
