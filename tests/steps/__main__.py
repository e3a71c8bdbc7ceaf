"""How long a node's loop is kept by one step of a coordinator: processor time, without clients and disks.

python -m tests.steps load --commits 1000000     # a coordinator loads a partition of __consumer_offsets
python -m tests.steps groups                     # 5,000 groups of ten members, and one group of 500
python -m tests.steps consumers                  # the same of the consumer protocol, with two members each
python -m tests.steps compact --commits 2000000  # a partition of __consumer_offsets is compacted, then loaded
python -m tests.steps metadata --partitions 2000 # whole nodes: partitions are created, led anew, moved, deleted
"""

import argparse
import gc
import sys

from tests.steps import compacting, consumers, groups, loading, metadata

from strandline.server.main import tune_garbage_collection


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["load", "compact", "groups", "consumers", "metadata"])
    parser.add_argument("--commits", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=5_000)
    parser.add_argument("--members", type=int, default=500)
    parser.add_argument("--partitions", type=int, default=2_000)
    parser.add_argument("--topics", type=int, default=10)
    parser.add_argument("--until", default="", help="the phase after which metadata ends")
    parser.add_argument("--thresholds", type=int, nargs=3, help="of the collector, instead of a node's")
    options = parser.parse_args()
    tune_garbage_collection()  # as a node does at its start
    if options.thresholds:
        gc.set_threshold(*options.thresholds)
    if options.what == "load":
        loading.main(options.commits)
    elif options.what == "compact":
        compacting.main(options.commits)
    elif options.what == "groups":
        groups.main(options.groups, options.members)
    elif options.what == "metadata":
        metadata.main(options.partitions, options.topics, options.until)
    else:
        consumers.main(options.groups, options.members)
    return 0


if __name__ == "__main__":
    sys.exit(main())
