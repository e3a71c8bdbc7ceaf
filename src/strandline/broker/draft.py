"""What the image becomes with a batch, or a snapshot, of more records than one step applies.

Nobody sees it before it is whole: a batch counts as one.
"""

from collections.abc import Iterable
from itertools import islice

from strandline.metadata.fitting import described, why_unfit
from strandline.metadata.framing import decode_record
from strandline.metadata.image import Image
from strandline.quorum.ports import CommittedBatch, SnapshotId
from strandline.wire.compress import Corrupt


class Draft:
    def __init__(self, image: Image, payloads: Iterable[bytes], source: CommittedBatch | SnapshotId) -> None:
        """`image`: what lies below the first of the records, for this draft alone."""
        self.image = image
        self.payloads = iter(payloads)
        self.source = source
        self.applied = 0  # records
        self.size = 0  # their bytes
        self.is_whole = False

    def go_on(self, limit: int | None = None) -> str | None:
        """Apply so many more records (None: all); returns why the next one, behind those, cannot be applied."""
        assert not self.is_whole
        before = self.applied
        try:
            for payload in islice(self.payloads, limit):
                why = why_not_applied(self.image, payload)
                if why is None and self.image.transaction is not None and isinstance(self.source, SnapshotId):
                    why = "no snapshot has a transaction"
                if why is not None:
                    return why
                self.applied += 1
                self.size += len(payload)
        except Corrupt as error:
            return str(error)
        self.is_whole = limit is None or self.applied < before + limit
        return None


def why_not_applied(image: Image, payload: bytes) -> str | None:
    """None: it is applied now."""
    try:
        record = decode_record(payload)
    except Corrupt as error:
        return str(error)
    why = why_unfit(image, record)
    if why is None:
        image.apply(record)
        return None
    return f"{why}: {described(record)}"
