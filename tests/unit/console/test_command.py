"""`strandline console` as a shell starts it, and what it says if it cannot start."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, build_opener, urlopen

import pytest

from strandline.cli.nodes.console import console, opened, report
from strandline.client.ask import config_of

NOBODY = "127.0.0.1:1"


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_without_the_extra_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("strandline.console")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(SystemExit):
        opened(config_of(NOBODY), "", "127.0.0.1", 0, False)
    said = capsys.readouterr().err
    assert said == "error: the console needs starlette and uvicorn\n  pip install 'strandline[console]'\n"


def test_a_port_that_is_taken_is_named(capsys: pytest.CaptureFixture[str], taken_port: int) -> None:
    with pytest.raises(SystemExit):
        opened(config_of(NOBODY), "", "127.0.0.1", taken_port, False)
    said = capsys.readouterr().err
    assert f"cannot listen at 127.0.0.1:{taken_port}: Address already in use" in said
    assert "name another port with --port" in said


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_cannot_be_is_refused(capsys: pytest.CaptureFixture[str], port: int) -> None:
    with pytest.raises(SystemExit) as ended:
        console(port=port)
    assert ended.value.code == 2
    assert "--port must be between 0 and 65535" in capsys.readouterr().err


def test_a_change_is_a_line_with_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    report("election: {}")
    assert capsys.readouterr().err.partition("Z ")[2] == "change by the console: election: {}\n"


@pytest.mark.slow
def test_the_printed_address_opens_the_page_and_ctrl_c_ends_it() -> None:
    command = ["console", "--json", "--port", "0", "--bootstrap-server", NOBODY]
    process = subprocess.Popen(
        [sys.executable, "-m", "strandline", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        assert started["read_only"] is True
        address, _, _ = started["url"].partition("?")
        with pytest.raises(HTTPError, match="401"):
            urlopen(address, timeout=30)
        browser = build_opener(HTTPCookieProcessor())
        with browser.open(started["url"], timeout=30) as page:
            assert (page.url, page.status) == (address, 200)
            assert b"<title>Strandline</title>" in page.read()
        with browser.open(f"{address}api/live", timeout=30) as events:
            assert events.readline().startswith(b'data: {"stream":')
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0, "an open page must not keep it"
    finally:
        process.kill()
        _, said = process.communicate()
    assert said == "stopped\n"
