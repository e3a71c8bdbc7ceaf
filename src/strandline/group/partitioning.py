"""Which partition of `__consumer_offsets` keeps a group: Java's String.hashCode modulo, as every Kafka client expects."""


def partition_for(group_id: str, partitions: int) -> int:
    code = 0
    units = group_id.encode("utf-16-be")
    for at in range(0, len(units), 2):
        code = (31 * code + (units[at] << 8) + units[at + 1]) & 0xFFFFFFFF
    return (code & 0x7FFFFFFF) % partitions
