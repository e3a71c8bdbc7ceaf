"""`tests.planted.hunted:NAME`: a planted bug for those who look for it, who do not wait long for what never comes.

When faults end, a sound cluster is well again in a few seconds. What hangs costs as much for each second that passes.
"""

from tests.planted.hook import install as plant

BOUND_MS = 20_000


def install(name: str) -> None:
    """Without a name, the source as it is, judged as strictly."""
    if name:
        plant(name)
    from strandline.sim.runs import calm  # only now: what it imports may have the bug

    calm.BOUND_MS = BOUND_MS
