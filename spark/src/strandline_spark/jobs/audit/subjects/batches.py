"""Single batches: checksums, ends that are torn off, bytes that are not a batch, batches in segments of other offsets.

What is unsound above the high watermark, at the very end of a log, is what a crash leaves, and its broker will cut it
off at its next start: a warning. Elsewhere it is an error.
"""

from strandline_spark.jobs.audit.rows import ERROR, WARNING, case, said

RULES = {
    "crc": "the checksum of a batch is wrong: bits have changed",
    "torn": "a file ends within a batch",
    "corrupt": "bytes that are not a batch",
    "misplaced": "a batch lies in a segment for other offsets",
}
GOOD = "coalesce(good, segment, base_offset)"  # nothing can be read from there
NEXT = "coalesce(next_good, following)"  # to there; null: to the end
IS_LOST = f"({NEXT} is not null or {GOOD} < high_watermark)"
BEYOND = "(fault is null or fault = 'crc') and last_offset >= following and last_offset < high_watermark"


def cases() -> list[str]:
    """Of rows of `walk`."""
    end = "greatest(last_offset, base_offset) + 1"
    lost = {
        "offset": GOOD,
        "end": f"greatest(coalesce({NEXT}, high_watermark), {GOOD} + 1)",
        "severity": f"if({IS_LOST}, '{ERROR}', '{WARNING}')",
    }
    unread = f"if({IS_LOST}, '', ', above all that is known to be committed')"
    crc = said("the batch at byte %d of segment %d does not match its checksum", "position", "segment")
    torn = said("segment %d ends within the batch that begins at byte %d%s", "segment", "position", unread)
    corrupt = said("segment %d has %d bytes at %d that are not a batch%s", "segment", "size", "position", unread)
    place = ("segment", "base_offset", "last_offset", "position")
    misplaced = said("segment %d has a batch of the offsets %d to %d at byte %d", *place)
    return [
        case("fault = 'crc'", "crc", crc, offset="base_offset", end=end),
        case("fault = 'torn'", "torn", torn, **lost),
        case("fault = 'corrupt'", "corrupt", corrupt, **lost),
        case(f"fault = 'misplaced' or ({BEYOND})", "misplaced", misplaced, offset="base_offset", end=end),
    ]
