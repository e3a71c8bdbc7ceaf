"""What runs have where not everybody may do everything, and somebody forges what nodes send (see `drawn`)."""

from strandline.base.ids import INTERNAL_TOPICS, TopicPartition
from strandline.metadata.security.acls import CLUSTER_NAME, ResourceType
from strandline.sim.clients.client import Client
from strandline.sim.clients.permitter import Permitter
from strandline.sim.clients.sessioned import Sessioned
from strandline.sim.scene import Scene
from strandline.sim.simulation import World
from strandline.sim.stranger.intruder import INTRUDER, Intruder
from strandline.sim.world.options import Options

GROUPS = ("ga", "gb", "members", "copying")
IDS = ("t-a", "t-b", "t-c", "t-d", "t-h", "t-i")


def enter_permitter(scene: Scene, options: Options) -> list[Permitter]:
    """None without an authorizer."""
    if not options.authorizer:
        return []
    permitter = Permitter(scene, "permitter", options.permissions_ms, f"User:{INTRUDER}", {})
    scene.enter(permitter)
    return [permitter]


def begin_to_change(permitter: Permitter, scene: Scene, world: World) -> Client:
    """From now on, and for those who are there now. Somebody who reads in a session, to see what becomes of it."""
    topics = world.committed.image.topics.values()
    ats = [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]
    reader = Sessioned(scene, "sa", sorted(at for at in ats if at.topic not in INTERNAL_TOPICS))
    scene.enter(reader)
    permitter.resources = {
        ResourceType.TOPIC: sorted(world.committed.image.topic_ids),
        ResourceType.GROUP: GROUPS,
        ResourceType.TRANSACTIONAL_ID: IDS,
        ResourceType.CLUSTER: (CLUSTER_NAME,),
    }
    permitter.clients = [client.name for client in scene.clients if client.name not in ("admin", "permitter")]
    permitter.may_change = True
    return reader


def start_intruder(world: World) -> Intruder | None:
    return Intruder(world, world.options.intruder_ms) if world.options.intruder_ms else None
