"""Durability off the event loop: `Sync` and `Save` effects, performed by one thread and answered by `Synced`.

Group commit: what arrives while the thread is busy waits and becomes one batch, in which every path is flushed once and
of several saves of one path only the last is written (its answer covers the earlier ones). One thread, because two
saves of one path must not overtake each other, and because flushes of one device queue in the kernel anyway.

Invariants:
  - a `Synced` follows a flush that began after its effect was performed;
  - answers come in the order of the effects;
  - a flush that fails is never repeated and never answered: the kernel may have dropped the pages, so the node crashes.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from strandline.base.effects import Save, Sync, Synced
from strandline.server.disk import RealDisk


class Flusher:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        disk: RealDisk,
        on_event: Callable[[Synced], None],
        on_crash: Callable[[BaseException, object], None],
    ) -> None:
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
        batch, self.waiting = self.waiting, []
        future = self.thread.submit(self.flush, batch)
        future.add_done_callback(lambda done: self.hand_over(batch, done))

    def flush(self, batch: list[Sync | Save]) -> None:
        """Runs in the thread."""
        paths: dict[str, None] = {}
        contents: dict[str, bytes] = {}
        for effect in batch:
            if isinstance(effect, Save):
                contents[effect.path] = effect.content
            else:
                paths.update(dict.fromkeys(effect.paths))
        self.disk.sync(list(paths))
        for path, content in contents.items():
            self.disk.save(path, content)

    def hand_over(self, batch: list[Sync | Save], done: "Future[None]") -> None:
        """Runs in the thread: back to the loop, unless the loop is gone."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.finish, batch, done)

    def finish(self, batch: list[Sync | Save], done: "Future[None]") -> None:
        error = done.exception()
        if error is not None:
            self.on_crash(error, batch)
            return
        self.busy = False
        for effect in batch:
            self.on_event(Synced(effect.token))
        if self.waiting and not self.busy:
            self.busy = True
            self.begin()

    def close(self) -> None:
        """Wait for the batch in flight; what still waits was never promised to anybody."""
        self.thread.shutdown(wait=True)
