"""Which files a folder of Parquet files consists of: one JSON line for each thing that happened to it.

A batch is in the table if, and only if, its `Committed` line is there. What is about to happen to names that readers
see is written down first, so that whoever opens the table after a crash can finish it or take it back, without
looking through folders:

  - `Begun`, then the renames, then `Committed`. Begun without an end: its files are deleted, the batch comes again.
  - `Replaced`, then the renames and deletions of a compaction, then `Settled`. Without that: they are done again.

Invariants:
  - lines are only appended; a last line that is not complete does not count, and is cut before the next is written
  - an application's batches rise; a file is in the table once
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from strandline.base.value import Value
from strandline_spark import durable
from strandline_spark.errors import StrandlineError
from strandline_spark.tables.account import Account
from strandline_spark.tables.files import DataFile

FOLDER = "_strandline"  # readers pass over folders with an underscore
NAME = "manifest.jsonl"


class Created(Value, frozen=True, tag="created"):
    columns: str  # Spark's JSON of the whole schema
    partition_by: tuple[str, ...] = ()


class Begun(Value, frozen=True, tag="begun"):
    application: str
    batch: int
    files: list[str]


class Committed(Value, frozen=True, tag="committed"):
    application: str
    batch: int
    time_ms: int
    files: list[DataFile]
    account: Account  # of this batch alone


class Undone(Value, frozen=True, tag="undone"):
    application: str
    batch: int


class Retracted(Value, frozen=True, tag="retracted"):
    """The last batch is taken back, with these files: as if it had only begun."""

    application: str
    batch: int
    files: list[str]


class Replaced(Value, frozen=True, tag="replaced"):
    """Some files by others with the same rows; `staged` is the folder where those others are at first."""

    staged: str
    old: list[str]
    new: list[DataFile]


class Settled(Value, frozen=True, tag="settled"):
    """What the last `Replaced` said has been done."""


class Based(Value, frozen=True, tag="based"):
    """All that was so far, in one line."""

    files: list[DataFile]
    batches: dict[str, int]
    accounts: dict[str, Account]


Line = Created | Begun | Committed | Undone | Retracted | Replaced | Settled | Based


class State:
    """What the lines say so far."""

    def __init__(self) -> None:
        self.created: Created | None = None
        self.files: dict[str, DataFile] = {}
        self.batches: dict[str, int] = {}  # the last of each application
        self.accounts: dict[str, Account] = {}  # of each application, over all its batches
        self.begun: Begun | None = None
        self.replaced: Replaced | None = None
        self.lines = 0

    def apply(self, line: Line) -> None:
        self.lines += 1
        match line:
            case Created():
                self.created = line
            case Begun():
                self.begun = line
            case Undone():
                self.begun = None
            case Committed(application, batch, _, files, account):
                assert batch > self.batches.get(application, -1), f"batch {batch} of {application} for the second time"
                self.begun = None
                self.add(files)
                self.batches[application] = batch
                self.accounts[application] = self.accounts.get(application, Account()).plus(account)
            case Retracted(application, batch, paths):
                assert self.batches.get(application) == batch, "only the last batch can be taken back"
                rows = sum(self.files.pop(path).rows for path in paths)
                self.batches[application] = batch - 1
                self.accounts[application] = self.accounts[application].plus(Account(rows=-rows))
                self.begun = Begun(application, batch, paths)
            case Replaced(_, old, new):
                for path in old:
                    del self.files[path]
                self.add(new)
                self.replaced = line
            case Settled():
                self.replaced = None
            case Based(files, batches, accounts):
                self.files = {}
                self.add(files)
                self.batches = dict(batches)
                self.accounts = dict(accounts)

    def add(self, files: Iterable[DataFile]) -> None:
        for file in files:
            assert file.path not in self.files, f"{file.path} is in the table already"
            self.files[file.path] = file

    def base(self) -> Based:
        return Based(list(self.files.values()), self.batches, self.accounts)


def read_lines(path: str) -> Iterator[tuple[Line, int]]:
    """Every whole line, and where it ends in bytes. Raises StrandlineError where one makes no sense."""
    decoder = msgspec.json.Decoder(Line)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return
    end = 0
    for text in data.splitlines(keepends=True):
        try:
            line = decoder.decode(text) if text.endswith(b"\n") else None
        except msgspec.DecodeError as error:
            if end + len(text) < len(data):
                raise StrandlineError(
                    f"{path} is damaged at byte {end}: {error}",
                    "restore it from a copy; the table's files alone do not show which batches are complete",
                ) from None
            line = None
        if line is None:
            return  # a write was under way when its process died
        end += len(text)
        yield line, end


def read_state(path: str) -> tuple[State, int]:
    """What a manifest says, and how many bytes of it count."""
    state, whole = State(), 0
    for line, end in read_lines(path):
        state.apply(line)
        whole = end
    return state, whole


class Manifest:
    """The manifest while one process writes it. Not for readers: `read_state` is."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.state, end = read_state(path)
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.ftruncate(self.file, end)
            durable.sync(os.path.dirname(path))
        except BaseException:
            os.close(self.file)
            raise

    def append(self, line: Line) -> None:
        """Write one line, durably, before anything relies on it. If that fails, nothing has happened."""
        self.state.apply(line)
        data = msgspec.json.encode(line) + b"\n"
        end = os.lseek(self.file, 0, os.SEEK_END)
        try:
            while data:
                data = data[os.write(self.file, data) :]
            os.fsync(self.file)
        except OSError:  # a full disk: half a line may be there, and whoever goes on writes behind it
            os.ftruncate(self.file, end)
            self.state, _ = read_state(self.path)
            raise

    def fold(self) -> None:
        """Replace all lines by few, in one step."""
        assert self.state.begun is None, "a batch is under way"
        assert self.state.replaced is None, "a compaction is under way"
        created = [] if self.state.created is None else [self.state.created]
        data = b"".join(msgspec.json.encode(line) + b"\n" for line in [*created, self.state.base()])
        durable.write(Path(self.path), data)
        old, self.file = self.file, os.open(self.path, os.O_WRONLY | os.O_APPEND)
        os.close(old)
        self.state.lines = 1 + len(created)

    def close(self) -> None:
        """Once: its number may be another file's then."""
        os.close(self.file)
