"""The error answers of requests that another node should have answered, each in its response's own form."""

from typing import Any

from strandline.base.errors import ErrorCode, error_of
from strandline.controller.refusals import refusal
from strandline.wire.messages.cluster.alter_configs import AlterConfigsResponse
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from strandline.wire.messages.cluster.incremental_alter_configs import IncrementalAlterConfigsResponse
from strandline.wire.messages.security.alter_client_quotas import AlterClientQuotasResponse
from strandline.wire.messages.security.alter_user_scram_credentials import AlterUserScramCredentialsResponse
from strandline.wire.messages.security.create_acls import CreateAclsResponse
from strandline.wire.messages.security.delete_acls import DeleteAclsResponse
from strandline.wire.messages.topics.create_partitions import CreatePartitionsResponse
from strandline.wire.messages.topics.create_topics import CreateTopicsResponse
from strandline.wire.messages.topics.delete_topics import DeleteTopicsResponse
from strandline.wire.messages.topics.elect_leaders import ElectLeadersResponse


def refusal_of(request: Any, error: ErrorCode) -> Any:
    """The response to `request` in which everything failed with `error`: the controller's forms, and the quorum's."""
    assert error is not ErrorCode.NONE
    if isinstance(request, DescribeQuorumRequest):
        return DescribeQuorumResponse(error_code=error)
    return refusal(request, error)


def error_in(response: Any) -> ErrorCode:
    """The error that a whole response failed with: its own, or the one that its first entry has."""
    match response:
        case CreateTopicsResponse(topics=(first, *_)):
            return error_of(first.error_code)
        case DeleteTopicsResponse(responses=(first, *_)) | IncrementalAlterConfigsResponse(responses=(first, *_)):
            return error_of(first.error_code)
        case DeleteAclsResponse(filter_results=(first, *_)):
            return error_of(first.error_code)
        case AlterConfigsResponse(responses=(first, *_)):
            return error_of(first.error_code)
        case CreatePartitionsResponse(results=(first, *_)) | CreateAclsResponse(results=(first, *_)):
            return error_of(first.error_code)
        case AlterUserScramCredentialsResponse(results=(first, *_)) | AlterClientQuotasResponse(entries=(first, *_)):
            return error_of(first.error_code)
        case DescribeQuorumResponse(error_code=ErrorCode.NONE, topics=(topic, *_)) if topic.partitions:
            return error_of(topic.partitions[0].error_code)
        case ElectLeadersResponse(error_code=ErrorCode.NONE, replica_election_results=(first, *_)) if (
            first.partition_result
        ):
            return error_of(first.partition_result[0].error_code)
        case _:
            return error_of(getattr(response, "error_code", 0))
