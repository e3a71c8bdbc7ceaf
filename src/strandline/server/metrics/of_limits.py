"""What the limits of connections have done, as metrics."""

from collections.abc import Iterator

from strandline.base.metrics import Family
from strandline.broker.metrics import of_limits as table
from strandline.server.network.net import Net


def families(net: Net) -> Iterator[Family]:
    yield Family(table.POOL_USED, [((), net.requests.parts + net.requests.queued)])
    yield Family(table.UNSENT, [((), net.answers.held)])
    yield Family(table.REFUSED, [((reason,), count) for reason, count in net.limits.refused.items()])
    yield Family(table.DROPPED, [((reason,), count) for reason, count in net.watch.dropped.items()])
    yield Family(table.ACCEPT_THROTTLED, [((one.name,), one.throttled_ms) for one in net.acceptors])
    yield Family(table.LINES_LEFT_OUT, [((kind,), count) for kind, count in net.log_limit.left_out_ever.items()])
