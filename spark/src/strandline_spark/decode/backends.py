"""Which backend decodes: numba's compiled loops, or Python."""

import functools
import os
import warnings

COST = (
    "numba is not installed, so records are decoded in Python: 20 to 45 times slower, about 50 MB/s a core for small "
    "records and 150 MB/s for records of 1 KiB; `pip install 'strandline[spark]'` installs it"
)
CHOICE = "STRANDLINE_DECODE"  # "python": without numba though it is there


class SlowDecoding(UserWarning):
    """Decoding works, and is slow."""


@functools.cache
def backend() -> str:
    """ "numba" or "python". Warns once of what Python costs."""
    if os.environ.get(CHOICE) == "python":
        return "python"
    try:
        import strandline_spark.decode.kernel  # noqa: F401  # is it there, and does it compile here?
    except ImportError:
        warnings.warn(COST, SlowDecoding, stacklevel=3)
        return "python"
    return "numba"
