"""`strandline node --config FOLDER`: all shards of a machine as one, each in a process of its own.

A signal reaches all of them, so a restart of the machine is one event. A shard that crashes is started again, and the
others go on meanwhile. If this process ends, however it ends, the shards shut down by themselves (`lifeline`).
"""

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import Process
from pathlib import Path

from strandline.server import lifeline

log = logging.getLogger("strandline")

CRASHED_AGAIN_S = (1.0, 30.0)  # the first pause before a crashed shard is started again, and the longest
STEADY_S = 60.0  # a shard that has run so long begins with the first pause again
BAD_CONFIGURATION = 2


def run_machine(folder: Path) -> int:
    """The exit status: 0 after a controlled shutdown of all shards, else the first one that is not 0."""
    configs = sorted(folder.glob("*.properties"))
    if not configs:
        print(
            f"{folder} has no properties files: `strandline format --shards N` writes them next to the machine's",
            file=sys.stderr,
        )
        return BAD_CONFIGURATION
    return asyncio.run(Supervisor(configs).run())


class Supervisor:
    def __init__(self, configs: list[Path]) -> None:
        assert configs
        self.configs = configs
        self.running: dict[Path, Process] = {}
        self.stopping = asyncio.Event()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.interrupted, number)
        statuses = await asyncio.gather(*map(self.keep, self.configs))
        assert not self.running
        return next(filter(None, statuses), 0)

    def interrupted(self, number: int) -> None:
        self.stopping.set()
        for shard in self.running.values():
            shard.send_signal(number)

    async def keep(self, config: Path) -> int:
        """Start one shard again and again until all stop. A bad configuration stops all: it does not mend itself."""
        pause_s = 0.0
        while True:
            began = asyncio.get_running_loop().time()
            shard = self.running[config] = await self.start(config)
            if self.stopping.is_set():  # while it started
                shard.send_signal(signal.SIGTERM)
            status = await shard.wait()
            del self.running[config]
            if self.stopping.is_set():
                return status
            if status in (0, BAD_CONFIGURATION):
                log.error("%s has ended (status %d), and so does the machine", config.name, status)
                self.interrupted(signal.SIGTERM)
                return status
            first, longest = CRASHED_AGAIN_S
            lasted = asyncio.get_running_loop().time() - began
            pause_s = first if lasted > STEADY_S or not pause_s else min(2 * pause_s, longest)
            log.error("%s has ended (status %d), and starts again in %.0f s", config.name, status, pause_s)
            try:
                await asyncio.wait_for(self.stopping.wait(), pause_s)
            except TimeoutError:
                continue
            return status

    async def start(self, config: Path) -> Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "strandline", "node", "--config", str(config)),
            stdin=asyncio.subprocess.DEVNULL,
            env={**os.environ, **lifeline.environment()},
            pass_fds=(lifeline.reading_end(),),
            start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on once
        )
