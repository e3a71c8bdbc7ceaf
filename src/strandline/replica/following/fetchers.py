"""One fetcher for each broker that leads something this broker follows, and the quota that they share.

Invariant (executed by `Replicas.check`): a follower of a leader that exists is in that leader's fetcher, and in no
other.
"""

from collections.abc import Iterable

from strandline.base.effects import Effect
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition
from strandline.base.time import Instant
from strandline.metadata.image import Image
from strandline.replica.following.fetcher import Fetcher
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.quota import quota_of


class Fetchers:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.quota = quota_of(host.me, "follower", host.config)
        self.by_leader: dict[NodeId, Fetcher] = {}

    def follow(self, hosted: Hosted) -> None:
        role = hosted.role
        assert type(role) is Follower, hosted.name
        assert role.leader not in (NOBODY, self.host.me), hosted.name
        fetcher = self.by_leader.get(role.leader)
        if fetcher is None:
            fetcher = self.by_leader[role.leader] = Fetcher(self.host, role.leader, self.quota)
        fetcher.follow(hosted)

    def leave(self, hosted: Hosted) -> None:
        """Copy it no longer, if it is being copied."""
        role = hosted.role
        fetcher = self.by_leader.get(role.leader) if type(role) is Follower else None
        if fetcher is not None:
            fetcher.leave(hosted.at)

    def forget(self, at: TopicIdPartition) -> None:
        """Its log directory has failed, and its role is gone already."""
        assert self.host.partitions.find(at) is None, at
        for fetcher in self.by_leader.values():
            fetcher.leave(at)

    def configure(self, image: Image, resources: Iterable[tuple[int, str]], anew: bool, now: Instant) -> None:
        """As `Quota.configure`."""
        self.quota.configure(image, resources, anew)
        for fetcher in self.by_leader.values():
            fetcher.quota_changed(now)

    def broker_registered(self, node: NodeId) -> None:
        """It may be a leader that is back."""
        fetcher = self.by_leader.get(node)
        if fetcher is not None:
            fetcher.leader_is_back()

    def flush(self, now: Instant) -> list[Effect]:
        return [effect for fetcher in self.by_leader.values() for effect in fetcher.flush(now)]

    def check(self) -> None:
        for node, fetcher in self.by_leader.items():
            assert fetcher.leader == node
            assert node not in (NOBODY, self.host.me)
            fetcher.check()
