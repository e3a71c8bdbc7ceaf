"""UpdateFeatures: all nodes agree on the levels of features (KIP-584, KIP-778), ELR first of all."""

from random import Random

import pytest
from tests.unit.controller.cluster import Cluster
from tests.unit.metadata.test_image import scram, topic

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.controller.basis import ControllerConfig
from strandline.controller.controller import Controller
from strandline.group.consumer.settings import is_consumer_protocol_finalized
from strandline.metadata.configs.topic_configs import MIN_ISR_KEY
from strandline.metadata.features import ELR_FEATURE, GROUP_FEATURE, METADATA_VERSION, TXN_FEATURE
from strandline.metadata.image import BROKER_RESOURCE, Image
from strandline.metadata.records import ConfigRecord, FeatureLevelRecord
from strandline.wire.messages.brokers.broker_registration import Feature
from strandline.wire.messages.cluster.update_features import FeatureUpdateKey, UpdateFeaturesRequest

E = ErrorCode
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
OLDER = (
    Feature(name=METADATA_VERSION, min_supported_version=7, max_supported_version=30),
    Feature(name=TXN_FEATURE, min_supported_version=0, max_supported_version=2),
    Feature(name=GROUP_FEATURE, min_supported_version=0, max_supported_version=1),
)


def update(made: Cluster, *levels: tuple[str, int], kind: int = UPGRADE, dry: bool = False) -> tuple[ErrorCode, str]:
    rows = tuple(FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level in levels)
    answer = made.ask(UpdateFeaturesRequest(feature_updates=rows, validate_only=dry), version=2)
    return E(answer.error_code), answer.error_message or ""


def test_eligible_leader_replicas_are_switched_on_and_off() -> None:
    made = Cluster(brokers=3, elr=False)
    assert update(made, (ELR_FEATURE, 1)) == (E.NONE, "")
    assert made.image.features[ELR_FEATURE] == 1
    assert update(made, (ELR_FEATURE, 0), kind=SAFE_DOWNGRADE) == (E.NONE, "")
    assert ELR_FEATURE not in made.image.features


def test_a_new_cluster_has_the_newest_transactions_and_may_go_back_to_any_older_ones() -> None:
    made = Cluster(brokers=3)
    assert made.image.features[TXN_FEATURE] == 2
    assert update(made, (TXN_FEATURE, 1))[0] == E.INVALID_UPDATE_VERSION, "that is a downgrade"
    for level in (1, 0):
        assert update(made, (TXN_FEATURE, level), kind=SAFE_DOWNGRADE) == (E.NONE, "")
        assert made.image.features.get(TXN_FEATURE, 0) == level
    assert update(made, (TXN_FEATURE, 2)) == (E.NONE, "")
    assert update(made, (TXN_FEATURE, 3))[0] == E.INVALID_UPDATE_VERSION


def test_a_new_cluster_has_the_consumer_protocol_and_an_older_one_until_somebody_says_so_does_not() -> None:
    made = Cluster(brokers=3)
    assert made.image.features[GROUP_FEATURE] == 1
    assert update(made, (GROUP_FEATURE, 2))[0] == E.INVALID_UPDATE_VERSION
    assert update(made, (GROUP_FEATURE, 0), kind=SAFE_DOWNGRADE) == (E.NONE, "")
    assert GROUP_FEATURE not in made.image.features
    assert update(made, (GROUP_FEATURE, 1)) == (E.NONE, "")
    older = Image()
    older.apply(FeatureLevelRecord(name=METADATA_VERSION, feature_level=29))
    assert not is_consumer_protocol_finalized(older)
    assert is_consumer_protocol_finalized(made.image)


def test_to_validate_writes_nothing() -> None:
    made = Cluster(brokers=3, elr=False)
    end = made.log.next_offset
    assert update(made, (ELR_FEATURE, 1), dry=True) == (E.NONE, "")
    assert update(made, (ELR_FEATURE, 2), dry=True)[0] == E.INVALID_UPDATE_VERSION
    assert made.log.next_offset == end


@pytest.mark.parametrize(
    ("name", "level", "kind", "why"),
    [
        (ELR_FEATURE, 2, UPGRADE, "Local controller only supports versions 0-1"),
        (ELR_FEATURE, -1, UPGRADE, "A feature version cannot be less than 0."),
        (ELR_FEATURE, 1, SAFE_DOWNGRADE, "Can't downgrade to a newer version."),
        (ELR_FEATURE, 1, 0, "The controller does not support the given upgrade type."),
        ("share.version", 1, UPGRADE, "Local controller does not support this feature."),
        (METADATA_VERSION, 31, UPGRADE, "Local controller only supports versions 30-30"),
        (METADATA_VERSION, 29, UNSAFE_DOWNGRADE, "Local controller only supports versions 30-30"),
        (METADATA_VERSION, 0, UNSAFE_DOWNGRADE, "Local controller only supports versions 30-30"),
    ],
)
def test_a_level_that_cannot_be_is_refused(name: str, level: int, kind: int, why: str) -> None:
    made = Cluster(brokers=3, elr=False)
    end = made.log.next_offset
    error, message = update(made, (name, level), kind=kind)
    assert error == E.INVALID_UPDATE_VERSION
    assert message.startswith("The update failed for all features since the following feature had an error: ")
    assert f"Invalid update version {level} for feature {name}. {why}" in message
    assert made.log.next_offset == end


def test_all_of_a_request_is_done_or_nothing() -> None:
    made = Cluster(brokers=3, elr=False)
    assert update(made, (ELR_FEATURE, 1), (METADATA_VERSION, 31))[0] == E.INVALID_UPDATE_VERSION
    assert ELR_FEATURE not in made.image.features
    assert update(made, (ELR_FEATURE, 1), (ELR_FEATURE, 0))[0] == E.INVALID_REQUEST


def test_a_broker_that_does_not_know_the_feature_keeps_it_off() -> None:
    made = Cluster(brokers=3, elr=False)
    made.ask(made.registration(4, features=OLDER), version=4, connection=1004)
    error, message = update(made, (ELR_FEATURE, 1))
    assert error == E.INVALID_UPDATE_VERSION
    assert "Broker 4 does not support this feature." in message


def test_a_broker_that_does_not_know_a_feature_in_force_is_not_registered() -> None:
    made = Cluster(brokers=3, elr=False)
    update(made, (ELR_FEATURE, 1))
    answer = made.ask(made.registration(4, features=OLDER), version=4, connection=1004)
    assert answer.error_code == E.UNSUPPORTED_VERSION


def test_t11_the_feature_rests_on_a_metadata_version_that_has_fields_for_it() -> None:
    """T11: not the metadata version switches it on, and not below the one whose records can carry it."""
    made = Cluster(brokers=3, elr=False)
    made.image.apply_all([FeatureLevelRecord(name=METADATA_VERSION, feature_level=22)])
    error, message = update(made, (ELR_FEATURE, 1))
    assert error == E.INVALID_UPDATE_VERSION
    assert f"{ELR_FEATURE} could not be set to 1 because it depends on {METADATA_VERSION} level 23" in message
    assert update(made, (METADATA_VERSION, 30)) == (E.NONE, "")
    assert ELR_FEATURE not in made.image.features
    assert update(made, (ELR_FEATURE, 1)) == (E.NONE, "")


def test_t11_what_makes_it_safe_is_written_in_the_same_batch() -> None:
    """T11, T1: no broker has a min ISR of its own from the moment at which the feature is in force."""
    made = Cluster(brokers=3, elr=False)
    own = ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="2", name=MIN_ISR_KEY, value="1")
    made.image.apply_all([own])
    start = len(made.log.records)
    assert update(made, (ELR_FEATURE, 1)) == (E.NONE, "")
    gone = ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="2", name=MIN_ISR_KEY, value=None)
    assert made.log.records[start:] == [gone, FeatureLevelRecord(name=ELR_FEATURE, feature_level=1)]
    assert MIN_ISR_KEY in made.image.configs[(BROKER_RESOURCE, "")]


def test_after_a_downgrade_the_next_change_drops_the_elr() -> None:
    made = Cluster(brokers=3, static={MIN_ISR_KEY: 2}, elr=False)
    update(made, (ELR_FEATURE, 1))
    made.create("t", (1, 2, 3), (1, 2, 3))
    for index in (0, 1):
        made.alter("t", (1, 2), index)
        made.alter("t", (1,), index)
        assert made.partition("t", index).elr == (2,)
    update(made, (ELR_FEATURE, 0), kind=SAFE_DOWNGRADE)
    made.alter("t", (1, 3))
    assert made.partition("t").elr == ()
    assert made.partition("t", 1).elr == (2,)
    made.fence(2)
    made.register(2)
    assert made.partition("t", 1).elr == (), "who lost its tail meanwhile is not eligible when the feature is on again"


def test_a_new_cluster_begins_with_users_and_an_older_one_gets_none() -> None:
    users = (scram("alice"), scram("bob", mechanism=2))
    made = Cluster(initial_users=users)
    assert set(made.image.scram) == {("alice", 1), ("bob", 2)}
    assert set(users) <= set(made.log.batches[0])
    older = Image()
    older.apply(topic())
    controller = Controller(NodeId(100), ControllerConfig(initial_users=users), {}, Random(1), made.log)
    controller.activate(older, 2, made.now)
    assert controller.image.features[METADATA_VERSION]
    assert not controller.image.scram
