"""Durability off the event loop: `Sync` and `Save` effects, performed by one thread and answered by `Synced`.

Group commit: what arrives while the thread is busy waits and becomes one batch, in which every path is flushed once and
of several saves of one path only the last is written (its answer covers the earlier ones). One thread, because two
saves of one path must not overtake each other, and because flushes of one device queue in the kernel anyway. Where the
loop saves a file by itself (`Disk.save`), the disk lets one of the two write at a time, and drops what is older.

Invariants:
  - a `Synced` follows a flush that began after its effect was performed;
  - answers come in the order of the effects;
  - a flush that fails is never repeated, since the kernel may have dropped the pages: the node crashes, or, where it
    can do without the directory, is told by `SyncFailed` for every effect that named what failed.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from strandline.base.effects import Save, Sync, Synced, SyncFailed, Token
from strandline.base.ports import DiskError, DiskFull
from strandline.server.storage.disk import RealDisk


class Flusher:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        disk: RealDisk,
        on_event: Callable[[Synced | SyncFailed], None],
        on_crash: Callable[[BaseException, object], None],
        *,
        is_vital: bool = True,
    ) -> None:
        """`is_vital`: the node cannot live on after a failure."""
        self.is_vital = is_vital
        self.loop = loop
        self.disk = disk
        self.on_event = on_event
        self.on_crash = on_crash
        self.waiting: list[Sync | Save] = []
        self.busy = False
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="flusher")

    def submit(self, effect: Sync | Save) -> None:
        self.waiting.append(effect)
        if not self.busy:
            # Once per loop turn, so that all effects of this turn share a batch.
            self.busy = True
            self.loop.call_soon(self.begin)

    def begin(self) -> None:
        assert self.busy
        assert self.waiting, "a batch has effects"
        batch, self.waiting = self.waiting, []
        future = self.thread.submit(self.flush, batch)
        future.add_done_callback(lambda done: self.hand_over(batch, done))

    def flush(self, batch: list[Sync | Save]) -> dict[str, DiskError]:
        """Runs in the thread. What went wrong, by path."""
        assert batch
        paths: dict[str, None] = {}
        newest: dict[str, Save] = {}
        for effect in batch:
            if isinstance(effect, Save):
                newest[effect.path] = effect
            else:
                paths.update(dict.fromkeys(effect.paths))
        errors = self.disk.sync_each(list(paths))
        assert errors.keys() <= paths.keys()
        for path, save in newest.items():
            try:
                self.disk.save_since(path, save.content, save.since)
            except DiskError as error:
                errors[path] = error
        return errors

    def hand_over(self, batch: list[Sync | Save], done: "Future[dict[str, DiskError]]") -> None:
        """Runs in the thread: back to the loop, unless the loop is gone."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.finish, batch, done)

    def finish(self, batch: list[Sync | Save], done: "Future[dict[str, DiskError]]") -> None:
        assert self.busy, "one batch at a time"
        error = done.exception()
        errors = {} if error is not None else done.result()
        if self.is_vital and errors:
            error = next(iter(errors.values()))
        if error is not None:
            self.on_crash(error, batch)
            return
        self.busy = False
        for effect in batch:
            paths = effect.paths if isinstance(effect, Sync) else (effect.path,)
            why = next((errors[path] for path in paths if path in errors), None) if errors else None
            self.on_event(Synced(effect.token) if why is None else failed(effect.token, why))
        if self.waiting and not self.busy:
            self.busy = True
            self.begin()

    def close(self) -> None:
        """Wait for the batch in flight; what still waits was never promised to anybody."""
        self.thread.shutdown(wait=True)


def failed(token: Token, error: DiskError) -> SyncFailed:
    assert str(error), "an error has a reason"
    return SyncFailed(token, str(error), isinstance(error, DiskFull))
