"""`python -m strandline.testing.node --config FILE`: a node on a disk that can lose power (see `power_loss`)."""

import sys

from strandline.server.node import run_node
from strandline.testing.power_loss import disk_of

if __name__ == "__main__":
    sys.exit(run_node(sys.argv[1:], disk_of))
