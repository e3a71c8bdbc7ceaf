"""Who may ask the console for what, each rule by a request that breaks it alone."""

from typing import Any

import pytest
from msgspec import Struct
from starlette.testclient import TestClient

from strandline.client.ask import config_of
from strandline.client.errors import StrandlineError
from strandline.console.app import Console, Settings
from strandline.console.facts import Observed
from strandline.console.guard import TOKEN_HEADER, Guard, Secrets
from strandline.console.view import Change, View

SECRETS = Secrets("token", "cookie-name", "cookie", "header")
HOST = "127.0.0.1:9080"


class Wanted(Struct):
    what: str
    secret: str = "a password"


def made(
    allow_changes: bool = True, host: str = "127.0.0.1", reports: list[str] | None = None
) -> tuple[TestClient, list[str]]:
    """A browser that has opened the printed address, and what it has changed."""
    done: list[str] = []

    def make(_: Observed, wanted: Any) -> str:
        if reports:
            raise StrandlineError("the cluster refuses more than one")
        done.append(wanted.what)
        return "done"

    view = View(
        "one",
        "One",
        reads={"thing": lambda _, query: dict(query)},
        changes={"thing": Change(Wanted, lambda _, wanted: f"would do {wanted.what}", make, ("secret",))},
    )
    settings = Settings(SECRETS, host, allow_changes, [].append if reports is None else reports.append)
    console = Console(Observed(config_of("127.0.0.1:1")), settings, [view])
    client = TestClient(console.application(), base_url=f"http://{HOST}", follow_redirects=False)
    assert client.get("/", params={"token": "token"}).status_code == 303
    return client, done


def posted(client: TestClient, path: str, **headers: str | None) -> int:
    """The status. None: without this header."""
    given = {"origin": f"http://{HOST}", TOKEN_HEADER: "header", **headers}
    kept = {name: text for name, text in given.items() if text is not None}
    return client.post(path, json={"what": "it"}, headers=kept).status_code


def test_the_printed_address_gives_a_cookie_and_leads_to_the_page_without_the_token() -> None:
    client, _ = made()
    answer = client.get("/", params={"token": "token"})
    assert answer.headers["location"] == "/"
    assert answer.headers["set-cookie"].split("; ") == ["cookie-name=cookie", "HttpOnly", "Path=/", "SameSite=strict"]
    assert client.get("/").status_code == 200
    assert client.get("/api/session").json()["token"] == "header"


@pytest.mark.parametrize("path", ["/", "/?token=other", "/?token=", "/static/app.js", "/api/session", "/api/live"])
def test_without_the_cookie_nothing_is_answered(path: str) -> None:
    client, _ = made()
    client.cookies.clear()
    assert client.get(path).status_code == 401
    client.cookies.set("cookie-name", "other")
    assert client.get(path).status_code == 401


def test_the_token_opens_the_page_alone() -> None:
    client, _ = made()
    client.cookies.clear()
    assert client.get("/api/session", params={"token": "token"}).status_code == 401


@pytest.mark.parametrize("host", ["attacker.example", "attacker.example:9080", "127.0.0.1.attacker.example", ""])
def test_another_name_for_this_machine_is_refused_also_with_the_token(host: str) -> None:
    client, _ = made()
    assert client.get("/api/session", headers={"host": host}).status_code == 421
    assert client.get("/", params={"token": "token"}, headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1", "[::1]:80"])
def test_this_machine_is_reached_at_any_port_as_through_a_tunnel(host: str) -> None:
    client, _ = made()
    assert client.get("/api/session", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(("listens", "host"), [("127.0.0.2", "127.0.0.2:9080"), ("Machine", "machine:9080")])
def test_the_address_that_is_printed_is_answered(listens: str, host: str) -> None:
    client, _ = made()
    client = TestClient(Guard(client.app, SECRETS, listens, False), follow_redirects=False)
    assert client.get("/", params={"token": "token"}, headers={"host": host}).status_code == 303


@pytest.mark.parametrize("other", ['a={"b": 1}', "a=\x80", "a b c"])
def test_cookies_of_other_programs_on_this_machine_do_not_hide_the_consoles(other: str) -> None:
    client, _ = made()
    cookies = f"{other}; {SECRETS.cookie_name}={SECRETS.cookie}".encode("latin-1")
    client.cookies.clear()
    assert client.get("/api/session", headers={"cookie": cookies}).status_code == 200


def test_a_console_at_another_address_answers_to_that_alone() -> None:
    client, _ = made(host="127.0.0.1")
    client = TestClient(client.app, base_url="http://10.0.0.7:9080")
    assert client.get("/").status_code == 421
    guard = Guard(client.app, SECRETS, "10.0.0.7", False)
    client = TestClient(guard, base_url="http://10.0.0.7:9080", follow_redirects=False)
    assert client.get("/", params={"token": "token"}).status_code == 303
    assert client.get("/", headers={"host": "127.0.0.1"}).status_code == 421


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_reads_nothing_though_the_browser_sends_the_cookie(site: str) -> None:
    client, _ = made()
    for path in ("/api/session", "/api/reads/thing", "/static/app.js"):
        assert client.get(path, headers={"sec-fetch-site": site}).status_code == 403
        assert client.get(path, headers={"sec-fetch-site": "same-origin"}).status_code == 200
    framed = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
    assert client.get("/", headers=framed).status_code == 403
    followed = {"sec-fetch-site": site, "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=followed).status_code == 200, "a link to the console is followed"
    assert client.get("/api/session", headers=followed).status_code == 403


def test_a_change_is_made_by_the_page_of_this_console_and_reported_with_its_outcome() -> None:
    reports: list[str] = []
    client, done = made(reports=reports)
    assert posted(client, "/api/plans/thing") == 200
    assert (done, reports) == ([], [])
    assert posted(client, "/api/changes/thing") == 200
    assert (done, reports) == (["it"], ['thing: {"what":"it"}: done']), "nothing private is reported"
    assert posted(client, "/api/changes/thing") == 409
    assert reports[1:] == ['thing: {"what":"it"}: failed (409)']


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": None},
        {"origin": ""},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9081"},
        {"origin": "https://127.0.0.1:9080"},
        {"origin": "http://attacker.example"},
        {TOKEN_HEADER: None},
        {TOKEN_HEADER: ""},
        {TOKEN_HEADER: "token"},
        {TOKEN_HEADER: "cookie"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_post_of_another_origin_or_without_the_pages_token_is_refused(headers: dict[str, str | None]) -> None:
    client, done = made()
    for path in ("/api/changes/thing", "/api/plans/thing", "/api/watch"):
        assert posted(client, path, **headers) == 403
    assert done == []


def test_a_console_is_read_only_unless_it_was_started_for_changes() -> None:
    client, done = made(allow_changes=False)
    assert posted(client, "/api/changes/thing") == 403
    assert posted(client, "/api/plans/thing") == 200
    assert done == []
    assert client.get("/api/session").json()["allow_changes"] is False


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_but_a_post_changes_anything(method: str) -> None:
    client, done = made()
    given = {"origin": f"http://{HOST}", TOKEN_HEADER: "header"}
    assert client.request(method, "/api/changes/thing", headers=given).status_code == 405
    assert done == []


def test_what_is_not_wanted_is_refused_before_anything_is_done() -> None:
    client, done = made()
    given = {"origin": f"http://{HOST}", TOKEN_HEADER: "header"}
    for body in (b"", b"{", b"{}", b'{"what": 1}', b"\xff", b'{"what": "' + b"x" * (5 << 20) + b'"}'):
        answer = client.post("/api/changes/thing", content=body, headers=given)
        assert (answer.status_code, "problem" in answer.json()) == (400, True)
    assert done == []


def test_every_answer_lets_the_page_run_its_own_scripts_alone_and_in_no_frame() -> None:
    client, _ = made()
    paths = ("/", "/static/app.js", "/api/session", "/api/reads/none", "/nowhere")
    answers = [client.get(path) for path in paths] + [client.get("/", headers={"host": "other"})]
    for answer in answers:
        policy = answer.headers["content-security-policy"].split("; ")
        assert policy[0] == "default-src 'none'"
        assert {"script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy)
        assert {"require-trusted-types-for 'script'", "trusted-types 'none'", "form-action 'none'"} <= set(policy)
        assert "unsafe" not in " ".join(policy)
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_two_consoles_have_other_secrets_and_each_of_a_console_is_another() -> None:
    known = [Secrets.new() for _ in range(2)]
    every = [text for one in known for text in (one.token, one.cookie_name, one.cookie, one.header)]
    assert len(set(every)) == len(every)
    assert min(len(text) for one in known for text in (one.token, one.cookie, one.header)) >= 32


def test_what_is_too_long_for_an_address_is_read_by_a_post_of_this_page_alone() -> None:
    client, done = made(allow_changes=False)
    given = {"origin": f"http://{HOST}", TOKEN_HEADER: "header"}
    answer = client.post("/api/reads/thing", json={"schema": "x" * 100_000}, headers=given)
    assert (answer.status_code, len(answer.json()["schema"])) == (200, 100_000)
    assert client.post("/api/reads/thing", json={"schema": 7}, headers=given).status_code == 400
    assert client.post("/api/reads/thing", json={}, headers=given | {TOKEN_HEADER: "other"}).status_code == 403
    assert client.post("/api/reads/thing", json={}, headers=given | {"origin": "http://x"}).status_code == 403
    assert done == []
