"""The inputs that are kept: one file for each target, small.

python -m tests.fuzz.corpus FOLDER    # takes in what `python -m tests.fuzz --found FOLDER` has found
"""

import base64
import sys
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from random import Random

FOLDER = Path(__file__).parent / "kept"
KEPT_BYTES_MAX = 24_000  # of each target, before they are written as text


def stored(target: str) -> Iterator[tuple[str, bytes]]:
    """Names and inputs."""
    for line in (FOLDER / f"{target}.txt").read_text().split():
        data = base64.b85decode(line)
        yield blake2b(data, digest_size=8).hexdigest(), data


def changed(inputs: Sequence[bytes], rng: Random) -> bytes:
    """One of them, with some bytes changed, taken out, or put in from another."""
    data = bytearray(rng.choice(inputs))
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0 if at < len(data):
                data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            case 1:
                del data[at : at + rng.randrange(9)]
            case 2:
                other = rng.choice(inputs)
                start = rng.randrange(len(other) + 1)
                data[at:at] = other[start : start + rng.randrange(33)]
            case _:
                data[at:at] = rng.randbytes(rng.randrange(5))
    return bytes(data)


def main(found: str) -> None:
    """The fuzzer keeps an input only if it reaches something new, and tries to make it shorter."""
    FOLDER.mkdir(exist_ok=True)
    for folder in sorted(Path(found).iterdir()):
        if folder.is_dir() and not folder.name.endswith("-found"):
            inputs = {path.read_bytes() for path in folder.iterdir()}
            keep(folder.name, sorted(inputs, key=lambda data: (len(data), data)))


def keep(target: str, inputs: Sequence[bytes]) -> None:
    """The shortest, up to the limit."""
    size, kept = 0, []
    for data in inputs:
        size += len(data)
        if size > KEPT_BYTES_MAX:
            break
        kept.append(base64.b85encode(data).decode())
    (FOLDER / f"{target}.txt").write_text("\n".join(kept) + "\n")
    print(f"{target}: {len(kept)} of {len(inputs)} inputs kept")


if __name__ == "__main__":
    main(sys.argv[1])
