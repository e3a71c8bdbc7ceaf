"""A real cluster inside a test: `with cluster() as strandline: …` (docs/testing.md).

pytest loads this package in every session of everybody who has it, so nothing is imported before it is used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strandline.testing.clusters import Cluster, async_cluster, cluster

__all__ = ["Cluster", "async_cluster", "cluster"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from strandline.testing import clusters

    return getattr(clusters, name)
