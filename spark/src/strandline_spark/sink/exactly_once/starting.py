"""What brokers must offer for exactly once, asked before any task runs."""

from strandline.base.errors import ErrorCode
from strandline.client.cluster import Cluster
from strandline.client.errors import KafkaError, Unsupported
from strandline.client.two_phase import begin
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest
from strandline_spark.errors import BadOption
from strandline_spark.sink.exactly_once.journal import ensure_topic
from strandline_spark.sink.exactly_once.names import PROBE

PROBE_TIMEOUT_MS = 60_000
FEATURE = "transaction.version"
LEVEL = 2
AT_LEAST_ONCE = "or write with deliveryGuarantee=at-least-once, the default"
checked: set[tuple[tuple[str, int], ...]] = set()  # clusters that this process has asked, by their addresses


def check(cluster: Cluster) -> None:
    """Raises BadOption if the cluster cannot write exactly once, `KafkaError` if it cannot be asked."""
    if cluster.config.bootstrap in checked:
        return
    answer, _ = cluster.ask_any(ApiVersionsRequest())
    level = next((row.max_version_level for row in answer.finalized_features if row.name == FEATURE), 0)
    if level < LEVEL:
        raise BadOption(
            f"deliveryGuarantee=exactly-once needs {FEATURE} {LEVEL}, and the cluster has {level}",
            f"`strandline features` raises it; {AT_LEAST_ONCE}",
        )
    try:
        begin(cluster, PROBE, PROBE_TIMEOUT_MS)
    except KafkaError as error:
        raise why_not(error) or error from None
    ensure_topic(cluster)
    checked.add(cluster.config.bootstrap)


def why_not(error: KafkaError) -> BadOption | None:
    """What a user must set, if that is what the error is about."""
    if isinstance(error, Unsupported):
        return BadOption(
            f"deliveryGuarantee=exactly-once needs prepared transactions (KIP-939): {error.problem}",
            f"Strandline's brokers offer them; {AT_LEAST_ONCE}",
        )
    if error.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return BadOption(
            "deliveryGuarantee=exactly-once needs prepared transactions, and the brokers do not allow them",
            f"set transaction.two.phase.commit.enable=true for every broker, and restart them; {AT_LEAST_ONCE}",
        )
    return None
