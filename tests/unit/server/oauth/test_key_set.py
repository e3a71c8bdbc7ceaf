"""Key sets from files and URLs: read in time, read again, and kept if they cannot be read."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.unit.security.test_tokens import DOCUMENT
from tests.unit.server.network.echo import run

from strandline.security.sasl.jwt_tokens import Key, keys_in
from strandline.server.oauth.key_set import BYTES_MAX, CannotRead, KeySet, Times, read

TIMES = Times(refresh_ms=3_600_000, backoff_ms=1, backoff_max_ms=5)
KEYS = keys_in(DOCUMENT)


class Site(BaseHTTPRequestHandler):
    answers: dict[str, tuple[int, bytes]]

    def do_GET(self) -> None:
        status, body = self.answers[self.path]
        self.send_response(status)
        self.send_header("Location", "/keys")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    good = json.dumps(DOCUMENT).encode()
    Site.answers = {
        "/keys": (200, good),
        "/moved": (302, b""),
        "/gone": (404, b""),
        "/page": (200, b"<html>"),
        "/large": (200, b" " * BYTES_MAX + good),
    }
    server = HTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_keys_come_from_a_url(site: str) -> None:
    assert [key.id for key in read(f"{site}/keys")] == ["rsa", "p256", "p384", "ed"]


def test_what_is_no_key_set_at_a_url_is_said(site: str) -> None:
    for path, why in {"moved": "302", "gone": "404", "page": "not usable", "large": "more than 1048576 bytes"}.items():
        with pytest.raises(CannotRead, match=why):
            read(f"{site}/{path}")
    with pytest.raises(CannotRead, match="cannot read http"):
        read("http://127.0.0.1:1/")


def test_keys_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "my keys.json"
    with pytest.raises(CannotRead, match="No such file"):
        KeySet(path.as_uri(), TIMES).begin()
    path.write_text(json.dumps(DOCUMENT))
    keys = KeySet(path.as_uri(), TIMES)
    keys.begin()
    assert len(keys.all()) == 4
    path.write_text("[" * 100_000)
    with pytest.raises(CannotRead, match="not usable"):
        read(path.as_uri())


class Source:
    """Keys one after the other; an error is raised."""

    def __init__(self, *outcomes: tuple[Key, ...] | CannotRead) -> None:
        self.outcomes = list(outcomes)

    def __call__(self, url: str) -> tuple[Key, ...]:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, CannotRead):
            raise outcome
        return outcome


def test_a_key_that_is_missing_makes_it_read_again_and_not_more_often_than_that() -> None:
    async def scenario() -> None:
        source = Source(KEYS[:1], KEYS[:2], KEYS)
        keys = KeySet("https://keys", TIMES, source)
        watching = asyncio.create_task(keys.watch())
        while len(keys.all()) < 1:
            await asyncio.sleep(0.001)
        for _ in range(100):
            keys.misses("new")
        assert not keys.wanted.is_set(), "it has just been read"
        keys.pause_s = 0
        keys.misses("new")
        while len(keys.all()) < 2:
            await asyncio.sleep(0.001)
        assert len(source.outcomes) == 1
        watching.cancel()

    run(scenario)


def test_it_is_read_again_from_time_to_time() -> None:
    async def scenario() -> None:
        keys = KeySet("https://keys", Times(1, 1, 1), Source(KEYS[:1], KEYS[:2], KEYS, *[KEYS] * 10_000))
        watching = asyncio.create_task(keys.watch())
        while len(keys.all()) < 4:
            await asyncio.sleep(0.001)
        watching.cancel()

    run(scenario)


def test_if_it_cannot_be_read_the_old_keys_stay_and_it_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        source = Source(CannotRead("no network"), CannotRead("no network"), KEYS[:1], CannotRead("gone"), KEYS)
        keys = KeySet("https://keys", TIMES, source)
        watching = asyncio.create_task(keys.watch())
        while len(keys.all()) < 1:
            await asyncio.sleep(0.001)
        keys.pause_s = 0
        keys.misses("new")
        while len(keys.all()) < 4:
            assert keys.all(), "the old ones stay"
            await asyncio.sleep(0.001)
        watching.cancel()

    run(scenario)
    reports = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert ["no network" in report for report in reports] == [True, False], "one for each time that it begins"


def test_it_is_tried_ever_more_seldom() -> None:
    keys = KeySet("https://keys", Times(3_600_000, 100, 1000))
    pauses = []
    for keys.failures in (0, 1, 2, 3, 4, 5, 1000):
        pauses.append(keys.next_pause_s())
    assert pauses == [3600, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
