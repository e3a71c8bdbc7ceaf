"""Row numbers and producers' sequences: row n of a track has sequence n modulo 2^31, as Kafka counts them."""

SEQUENCES = 1 << 31  # after 2^31 - 1 comes 0


def sequence_of(row: int) -> int:
    """The sequence of row `row`, counted from 0."""
    return row % SEQUENCES


def row_at_or_after(row: int, sequence: int) -> int:
    """The first row from `row` on that has this sequence."""
    return row + (sequence - row) % SEQUENCES


def rows_between(first_sequence: int, last_sequence: int) -> int:
    """How many rows a batch has, from its first and last sequence (inclusive)."""
    return (last_sequence - first_sequence) % SEQUENCES + 1
