"""G1c, circular information flow: transactions that have each read, directly or through others, what the other wrote.

A transaction is before another if that one has read from it, or began when it was over with the same transactional id.
Nothing that is committed can be before itself.
"""

from collections.abc import Iterable

from strandline.history.anomaly import Anomaly
from strandline.history.operation import Key, Operation, Outcome

Graph = dict[int, dict[int, None]]  # by the number of a transaction: those behind it


def find(operations: Iterable[Operation], excused: Iterable[Key] = ()) -> list[Anomaly]:
    """`excused`: of these nothing is asked."""
    without = set(excused)
    recorded = list(operations)
    read = {(one.key, one.value) for operation in recorded if operation.is_read_committed for one in operation.reads}
    happened = [
        operation
        for operation in recorded
        if operation.transactional_id
        and (
            operation.outcome is Outcome.OK
            or (operation.outcome is Outcome.UNKNOWN and any((one.key, one.value) in read for one in operation.writes))
        )
    ]
    cycles = [component for component in components(graph_of(happened, without)) if len(component) > 1]
    return [circular([happened[number] for number in sorted(component)]) for component in cycles]


def graph_of(happened: list[Operation], without: set[Key]) -> Graph:
    writers = {
        (write.key, write.value): number
        for number, operation in enumerate(happened)
        for write in operation.writes
        if write.key not in without
    }
    graph: Graph = {number: {} for number in range(len(happened))}
    last: dict[tuple[str, str], int] = {}  # by transactional id and process
    for number, operation in enumerate(happened):
        for one in operation.reads:
            writer = writers.get((one.key, one.value))
            if writer is not None and writer != number:
                graph[writer][number] = None
        before = last.get((operation.transactional_id, operation.process))
        if before is not None:
            graph[before][number] = None
        last[operation.transactional_id, operation.process] = number
    return graph


def components(graph: Graph) -> list[list[int]]:
    """Strongly connected ones, by Tarjan's algorithm, without recursion."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    found: list[list[int]] = []
    for root in graph:
        if root in order:
            continue
        work = [(root, iter(graph[root]))]
        order[root] = low[root] = len(order)
        stack.append(root)
        while work:
            node, following = work[-1]
            child = next(following, None)
            if child is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    at = stack.index(node)
                    found.append(stack[at:])
                    del stack[at:]
            elif child not in order:
                order[child] = low[child] = len(order)
                stack.append(child)
                work.append((child, iter(graph[child])))
            elif child in stack:
                low[node] = min(low[node], order[child])
    return found


def circular(operations: list[Operation]) -> Anomaly:
    first = operations[0]
    write = first.writes[0] if first.writes else None
    names = ", ".join(f"{one.process} at {one.began_ms}" for one in operations)
    return Anomaly(
        name="G1c",
        key=write.key if write is not None else first.reads[0].key,
        text=f"each of these transactions has read from the one before it, around: {names}",
        offsets=() if write is None else (write.offset,),
        values=() if write is None else (write.value,),
        writers=tuple(operations),
        was_committed=True,
    )
