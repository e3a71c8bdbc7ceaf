"""CRC-32C (Castagnoli), of record batches and of files: the compiled function of the distribution `crc32c`.

The package itself looks up its version and imports an argument parser, which cost each process 20 ms when it starts. So
its compiled module is loaded alone, where it is found.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import cast

Crc = Callable[..., int]


def _compiled() -> Crc:
    package = find_spec("crc32c")
    places = package.submodule_search_locations if package is not None else None
    found = PathFinder.find_spec("crc32c._crc32c", places)
    if found is None or found.loader is None:
        from crc32c import crc32c as function

        return cast(Crc, function)
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return cast(Crc, module.crc32c)


crc32c = _compiled()  # (content, value=0): of these bytes, after others whose CRC is the value
assert crc32c(b"123456789") == 0xE3069283, "the check value of CRC-32C"
