"""Held against naive oracles: every value that a byte or a name had since it was synced may survive, and no other."""

from copy import deepcopy
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.base.ports import DiskError
from strandline.sim.world.disk import SimDisk

pytestmark = pytest.mark.slow  # hundreds of drawn disks

FILE = "/d/a"
START = 8  # bytes that are synced before anything else, and mostly left alone
contents = st.binary(min_size=1, max_size=6)
writes = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.just(0), contents),
        st.tuples(st.just("append"), st.just(0), contents),
        st.tuples(st.just("write_at"), st.integers(START - 4, START + 12), contents),
        st.tuples(st.just("truncate"), st.integers(START - 4, START + 12), st.just(b"")),
        st.tuples(st.just("name"), st.just(0), st.just(b"")),
        st.tuples(st.just("name"), st.just(0), st.just(b"")),
        st.tuples(st.just("sync"), st.just(0), st.just(b"")),
        st.tuples(st.just("fail"), st.just(0), st.just(b"")),
    ),
    max_size=14,
)


class Bytes:
    """Which bytes may be at each position after a loss of power, and which sizes."""

    def __init__(self) -> None:
        self.now = bytes(START)
        self.states = [self.now]  # since the last sync
        self.written: dict[int, None] = {}  # positions, since the last sync
        self.doubtful: dict[int, set[int]] = {}  # what else may be at positions that a failed sync was about

    def write(self, at: int, content: bytes) -> None:
        start = min(at, len(self.now))
        self.become(self.now.ljust(at, b"\0")[:at] + content + self.now[at + len(content) :])
        for position in range(start, at + len(content)):
            self.written[position] = None
            self.doubtful.pop(position, None)

    def truncate(self, size: int) -> None:
        self.written |= dict.fromkeys(range(len(self.now), size))
        self.become(self.now[:size].ljust(size, b"\0"))
        self.doubtful = {position: others for position, others in self.doubtful.items() if position < size}

    def become(self, content: bytes) -> None:
        self.now = content
        self.states.append(content)

    def synced(self) -> None:
        self.states, self.written = [self.now], {}

    def values(self, at: int) -> set[int]:
        return {state[at] for state in self.states if at < len(state)} | self.doubtful.get(at, set())

    def failed(self) -> None:
        for at in self.written:
            if at < len(self.now):
                self.doubtful[at] = {0} | self.values(at)
        self.synced()

    def why_not(self, found: bytes) -> str | None:
        """One bit of one byte may be wrong, but not where all was synced."""
        shortest = min([*map(len, self.states), *self.doubtful])
        longest = max(map(len, self.states))
        if not shortest <= len(found) <= longest:
            return f"size {len(found)} is none of {shortest} to {longest}"
        if any(found[: START - 4]):
            return "what nobody touched is another"
        torn = 0
        for at in range(START - 4, len(found)):
            byte = found[at]
            values = self.values(at)
            if byte not in values and at not in self.written:
                return f"position {at} was synced and is another"
            torn += min((byte ^ value).bit_count() for value in values)
        return None if torn <= 1 else f"{torn} bits are wrong"


@settings(max_examples=400, deadline=None)
@given(writes, st.integers(0, 1 << 32))
def test_every_byte_that_survives_was_there_since_the_last_sync(
    script: list[tuple[str, int, bytes]], seed: int
) -> None:
    disk, oracle = SimDisk(), Bytes()
    file = disk.open(FILE)
    file.append([bytes(START)])
    disk.sync([FILE, "/d"])
    for step, (what, at, content) in enumerate(script):
        match what:
            case "append":
                file.append([content])
                oracle.write(len(oracle.now), content)
            case "write_at":
                file.write_at(at, content)
                oracle.write(at, content)
            case "truncate":
                file.truncate(at)
                oracle.truncate(at)
            case "name":
                disk.open(f"/d/{step}").close()
            case "sync":
                disk.sync([FILE])
                oracle.synced()
            case _:
                disk.fail_next_sync()
                try:
                    disk.sync([FILE])
                except DiskError:
                    oracle.failed()
        assert disk.read_file(FILE) == oracle.now
    lossy = disk.lossy(FILE)
    for n in range(12):
        left = deepcopy(disk)
        left.crash(Random(seed + n))
        found = left.read_file(FILE)
        assert found is not None
        assert oracle.why_not(found) is None, (found, oracle.states, oracle.doubtful)
        assert lossy or found == oracle.now
        left.crash(Random(seed))
        assert left.read_file(FILE) == found


names = st.sampled_from(["a", "b", "t", "t/a", "t/b", "u", "u/a"])
moves = st.lists(
    st.tuples(st.sampled_from(["write", "make", "rename", "remove", "tree", "sync", "sync"]), names, names), max_size=20
)


@settings(max_examples=600, deadline=None)
@given(moves, st.integers(0, 1 << 32))
def test_every_name_that_survives_had_its_meaning_since_its_directory_was_synced(
    script: list[tuple[str, str, str]], seed: int
) -> None:
    """Every file bears a content of its own, which is durable: so it tells which file a name means."""
    disk = SimDisk()
    meanings: dict[str, list[bytes | None]] = {"/d/a": [None], "/d/b": [None]}  # since "/d" was synced
    for step, (what, first, second) in enumerate(script):
        one, other = f"/d/{first}", f"/d/{second}"
        try:
            match what:
                case "write":
                    disk.write_file(one, b"%d" % step)
                    disk.sync([one])
                case "make":
                    disk.make_directory(one)
                case "rename" if not f"{other}/".startswith(f"{one}/"):
                    disk.rename(one, other)
                case "remove":
                    disk.remove(one)
                case "tree":
                    disk.remove_tree(one)
                case "sync":
                    disk.sync(["/d"])
                    meanings = {path: [] for path in meanings}
        except DiskError:
            disk.sync([f"{one}.tmp"])
            disk.remove(f"{one}.tmp")
        for path, seen in meanings.items():
            seen.append(disk.contents().get(path))
    before = disk.contents()
    files = [path for path in before if not disk.lossy(path)]
    disk.crash(Random(seed))
    after = disk.contents()
    assert len(set(after.values())) == len(after), "one file has two names"
    for path in files:
        assert after.get(path) == before[path]
    for path, seen in meanings.items():
        assert after.get(path) in seen, (path, seen)
    assert disk.used == sum(map(len, after.values()))
    disk.crash(Random(seed + 1))
    assert disk.contents() == after
