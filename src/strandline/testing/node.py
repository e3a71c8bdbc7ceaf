"""`python -m strandline.testing.node --config FILE`: a node whose disk can fail (`disk_faults`)."""

import sys

from strandline.server.node import run_node
from strandline.testing.disk_faults import disk_of

if __name__ == "__main__":
    sys.exit(run_node(sys.argv[1:], disk_of))
