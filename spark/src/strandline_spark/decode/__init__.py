"""Record batches become Arrow record batches, without an object per record.

`decode` is all that a source needs; `walk` reads headers alone. The loops over bytes are compiled by numba (`kernel`);
`twin` does the same in Python, from the project's own record reader: the oracle of the tests, and what runs without
numba. Nothing here knows Spark.
"""

from strandline.wire.compress import Corrupt
from strandline_spark.decode.backends import backend
from strandline_spark.decode.columns import Columns, UnknownColumn
from strandline_spark.decode.decoding import Origin, decode, decode_heads
from strandline_spark.decode.heads import Heads, walk

__all__ = ["Columns", "Corrupt", "Heads", "Origin", "UnknownColumn", "backend", "decode", "decode_heads", "walk"]
