"""Record batches become Arrow record batches, without an object per record.

`decode` is all that a source needs; `walk` reads headers alone. The loops over bytes are compiled by numba (`kernel`);
`twin` does the same in Python, from the project's own record reader: the oracle of the tests, and what runs without
numba. Nothing here knows Spark.
"""

from strandline.pipeline.decode.backends import backend
from strandline.pipeline.decode.columns import Columns, UnknownColumn
from strandline.pipeline.decode.decoding import Origin, decode, decode_heads
from strandline.pipeline.decode.heads import Heads, walk
from strandline.wire.compress import Corrupt

__all__ = ["Columns", "Corrupt", "Heads", "Origin", "UnknownColumn", "backend", "decode", "decode_heads", "walk"]
