"""Another certificate for a node that runs."""

from strandline.testing.certificates import make_certificate
from strandline.testing.faults.fault import Fault
from strandline.testing.health import until
from strandline.testing.relayed_cluster import RelayedCluster, RelayedNode

READ = "uses new certificates for new connections"


def rotate(cluster: RelayedCluster, node: RelayedNode) -> Fault:
    """A new key and a new certificate, signed by the same authority. Connections that stand are kept."""
    secured = cluster.secured
    if secured is None:
        raise ValueError("a cluster without `secure` has no certificates")
    before = node.log_path.read_text(errors="replace").count(READ)
    store = secured.store(node.node_id)
    kept = store.with_suffix(".old")
    store.rename(kept)
    try:
        make_certificate(store, f"node-{node.node_id}", secured.authority, secured.authority_key)
    except BaseException:
        kept.rename(store)
        raise
    kept.unlink()
    cluster.present(node)
    if node.answers:
        until(lambda: "" if node.log_path.read_text(errors="replace").count(READ) > before else "it is not read yet")
    return Fault(f"node {node.node_id} has a new certificate")
