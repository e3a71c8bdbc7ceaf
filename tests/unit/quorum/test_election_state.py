"""The file `quorum-state`."""

import json

import pytest

from strandline.base.ids import NOBODY, NodeId
from strandline.quorum.elections.election_state import (
    SHORT,
    VOTES_LOST,
    DamagedFileError,
    ElectionState,
    decode_quorum_state,
    encode_election,
)

HUGE = encode_election(ElectionState(1), "c", []).replace(b'"leaderEpoch":1', b'"leaderEpoch":1e70')


def test_the_file_has_kafkas_fields() -> None:
    content = encode_election(ElectionState(7, NodeId(2), NOBODY), "cluster", [NodeId(1), NodeId(2)])
    assert json.loads(content) == {
        "clusterId": "cluster",
        "leaderId": 2,
        "leaderEpoch": 7,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}, {"voterId": 2}],
        "data_version": 0,
    }


def test_round_trip() -> None:
    state = ElectionState(7, NOBODY, NodeId(3))
    assert decode_quorum_state(encode_election(state, "c", [NodeId(3)]), "path")[0] == state


@pytest.mark.parametrize("applied", [0, 70, SHORT, VOTES_LOST])
def test_how_far_metadata_was_committed_stands_in_kafkas_field(applied: int) -> None:
    content = encode_election(ElectionState(7), "c", [], applied)
    assert json.loads(content)["appliedOffset"] == applied
    assert decode_quorum_state(content, "path") == (ElectionState(7), applied)


@pytest.mark.parametrize("applied", [-2, SHORT + 1])
def test_an_applied_offset_that_no_log_has_is_damage(applied: int) -> None:
    with pytest.raises(DamagedFileError, match="applied offset"):
        decode_quorum_state(encode_election(ElectionState(7), "c", [], applied), "path")


def test_kafkas_own_file_is_read() -> None:
    content = (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":5,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    assert decode_quorum_state(content, "path")[0] == ElectionState(5, NodeId(1), NOBODY)


def test_no_file_means_nothing_happened_yet() -> None:
    assert decode_quorum_state(None, "path")[0] == ElectionState(0, NOBODY, NOBODY)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"leaderId": 1', b"\xff\xfe"])
def test_a_damaged_file_is_no_licence_to_vote_again(content: bytes) -> None:
    with pytest.raises(ValueError, match="quorum-state"):
        decode_quorum_state(content, "/meta/quorum-state")


def test_dynamic_voters_are_not_known_here() -> None:
    content = encode_election(ElectionState(1), "c", []).replace(b'"data_version":0', b'"data_version":1')
    with pytest.raises(ValueError, match="data_version 1"):
        decode_quorum_state(content, "path")


@pytest.mark.parametrize(
    "hostile",
    [
        ElectionState(-2),
        ElectionState(1, NodeId(-2)),
        ElectionState(1, NOBODY, NodeId(1 << 31)),
        ElectionState(1 << 70),
    ],
)
def test_numbers_that_no_node_writes_are_damage(hostile: ElectionState) -> None:
    content = encode_election(hostile, "c", []) if hostile.epoch < 1 << 63 else HUGE
    with pytest.raises(ValueError, match="/meta/quorum-state"):
        decode_quorum_state(content, "/meta/quorum-state")


def test_a_voted_node_that_is_no_voter_still_keeps_us_from_voting_again() -> None:
    content = encode_election(ElectionState(7, NOBODY, NodeId(99)), "c", [NodeId(1)])
    assert decode_quorum_state(content, "path")[0].voted == 99
