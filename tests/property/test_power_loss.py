"""A loss of power on real files leaves what it leaves on the simulated disk at its worst: what was synced, alone."""

import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.base.ports import Disk, DiskError
from strandline.sim.world.disk import SimDisk
from strandline.testing.power_loss import PowerLossDisk, durable_files, restore

PATHS = st.sampled_from(["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "f/a"])
SIZES = st.integers(0, 12)
BYTES = st.binary(max_size=9)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), PATHS, BYTES),
        st.tuples(st.just("write_at"), PATHS, SIZES, BYTES),
        st.tuples(st.just("truncate"), PATHS, SIZES),
        st.tuples(st.just("write_file"), PATHS, BYTES),
        st.tuples(st.just("save"), PATHS, BYTES),
        st.tuples(st.just("make_directory"), PATHS),
        st.tuples(st.just("rename"), PATHS, PATHS),
        st.tuples(st.just("remove"), PATHS),
        st.tuples(st.just("remove_tree"), PATHS),
        st.tuples(st.just("sync"), PATHS),
        st.tuples(st.just("sync"), st.just(".")),
    ),
    max_size=40,
)


class Worst:
    """Everything is lost that can be."""

    def randrange(self, start: int, stop: int) -> int:
        return start

    def randbytes(self, n: int) -> bytes:
        return bytes(n)


class Keeper:
    """Performs steps on a disk below a root. Files stay open, as a log's do, through renames and removals."""

    def __init__(self, disk: Disk, root: str) -> None:
        self.disk = disk
        self.root = root

    def path(self, name: str) -> str:
        return self.root if name == "." else f"{self.root}/{name}"

    def perform(self, step: tuple[object, ...]) -> None:
        """What is not possible is refused, and changes nothing."""
        kind, name, *rest = step
        with suppress(DiskError):
            self.do(str(kind), self.path(str(name)), rest)

    def do(self, kind: str, path: str, rest: list[object]) -> None:
        if kind in ("append", "write_at", "truncate"):
            file = self.disk.open(path)
            getattr(file, kind)(*([rest] if kind == "append" else rest))
            file.close()
        elif kind == "sync":
            self.disk.sync([path])
        elif kind == "rename":
            target = self.path(str(rest[0]))
            if not target.startswith(f"{path}/"):  # no system does that; the simulated one does not look
                self.disk.rename(path, target)
        else:
            getattr(self.disk, kind)(path, *rest)


def found_below(root: str) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(Path(root).rglob("*")) if p.is_file()}


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_after_a_cut_there_is_what_was_synced_and_nothing_else(steps: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = f"{folder}/data"
        Path(root).mkdir()
        disk = PowerLossDisk([root], Path(folder, "durable"))
        real = Keeper(disk, root)
        simulated = SimDisk(("/d",))
        oracle = Keeper(simulated, "/d")
        for step in steps:
            real.perform(step)
            oracle.perform(step)
        assert found_below(root) == {path[3:]: content for path, content in simulated.contents().items()}
        disk.close()
        simulated.crash(Worst())
        restore(Path(folder, "durable"))
        assert found_below(root) == {path[3:]: content for path, content in simulated.contents().items()}


@settings(max_examples=100, deadline=None)
@given(STEPS, STEPS, st.integers(0, 1 << 30))
def test_once_everything_is_synced_a_cut_costs_nothing(
    before: list[tuple[object, ...]], after: list[tuple[object, ...]], seed: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = f"{folder}/data"
        Path(root).mkdir()
        disk = PowerLossDisk([root], Path(folder, "durable"))
        keeper = Keeper(disk, root)
        for step in before:
            keeper.perform(step)
        disk.write_back(Random(seed))
        for step in after:
            keeper.perform(step)
        was = found_below(root)
        directories = sorted(str(p) for p in Path(root).rglob("*") if p.is_dir())
        disk.sync([*(f"{root}/{name}" for name in was), *directories, root])
        disk.close()
        files = durable_files(Path(folder, "durable"))
        assert {path[len(root) + 1 :] for path, content in files.items() if content} == set(was)
        restore(Path(folder, "durable"))
        assert found_below(root) == was
