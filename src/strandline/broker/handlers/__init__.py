"""One API, one file: how this node answers it. The table of them all is `broker.route`."""
