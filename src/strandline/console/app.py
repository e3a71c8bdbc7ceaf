"""The routes of the console."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import msgspec
from anyio import to_thread
from msgspec import Struct
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from strandline.base import VERSION
from strandline.base.value import Value
from strandline.client.errors import BadOption, StrandlineError
from strandline.console.catalog import VIEWS
from strandline.console.facts import SOURCES, Observed, Source
from strandline.console.guard import Guard, Secrets
from strandline.console.live import Live, Watched
from strandline.console.view import View
from strandline.wire.frame import Malformed

STATIC = Path(__file__).parent / "static"
LOG = logging.getLogger(__name__)
BODY_MAX = 4 << 20
HTTP_OK = 200
T = TypeVar("T")


class Settings(Value, frozen=True):
    secrets: Secrets
    host: str = "127.0.0.1"
    allow_changes: bool = False
    report: Callable[[str], None] = lambda _: None  # is called after each change, with what it was and its outcome


class Console:
    def __init__(
        self,
        observed: Observed,
        settings: Settings,
        views: Iterable[View] = VIEWS,
        sources: Iterable[Source] = SOURCES,
    ) -> None:
        self.observed = observed
        self.settings = settings
        self.views = tuple(views)
        self.reads = {name: read for view in self.views for name, read in view.reads.items()}
        self.changes = {name: change for view in self.views for name, change in view.changes.items()}
        self.live = Live(observed, sources, [channel for view in self.views for channel in view.channels])

    def application(self) -> Starlette:
        routes = [
            Route("/", self.page),
            Route("/api/session", self.session),
            Route("/api/live", self.stream),
            Route("/api/watch", self.watch, methods=["POST"]),
            Route("/api/reads/{name}", self.read, methods=["GET", "POST"]),
            Route("/api/plans/{name}", self.plan, methods=["POST"]),
            Route("/api/changes/{name}", self.change, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]
        settings = self.settings
        guard = Middleware(Guard, settings.secrets, settings.host, settings.allow_changes)
        return Starlette(routes=routes, middleware=[guard], lifespan=self.lifespan)

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.live.run)
            yield
            tasks.cancel_scope.cancel()

    # --- the page

    async def page(self, _: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def session(self, _: Request) -> Response:
        """What the page must know before anything else. Only a page of this origin can read it."""
        return answer(
            {
                "token": self.settings.secrets.header,
                "allow_changes": self.settings.allow_changes,
                "version": VERSION,
                "views": [{"name": view.name, "title": view.title} for view in self.views],
            }
        )

    async def stream(self, request: Request) -> Response:
        channels = request.query_params.get("channels", "").split(",")
        return StreamingResponse(self.live.events(channels), media_type="text/event-stream")

    async def watch(self, request: Request) -> Response:
        try:
            wanted = await decoded(request, Watched)
        except BadOption as error:
            return refusal(error)
        if not self.live.watch(wanted):
            return answer({"problem": "this page is not known any more", "advice": "load it again"}, 410)
        return answer({})

    # --- what is asked for, and changed

    async def read(self, request: Request) -> Response:
        read = self.reads.get(request.path_params["name"])
        if read is None:
            return not_there()
        query = dict(request.query_params)
        if request.method == "POST":
            try:
                query = await decoded(request, dict[str, str])
            except BadOption as error:
                return refusal(error)
        return await answered(lambda: read(self.observed, query))

    async def plan(self, request: Request) -> Response:
        return await self.planned_or_made(request, is_made=False)

    async def change(self, request: Request) -> Response:
        return await self.planned_or_made(request, is_made=True)

    async def planned_or_made(self, request: Request, is_made: bool) -> Response:
        name = request.path_params["name"]
        change = self.changes.get(name)
        if change is None:
            return not_there()
        try:
            wanted = await decoded(request, change.wanted)
        except BadOption as error:
            return refusal(error)
        do = change.make if is_made else change.plan
        done = await answered(lambda: do(self.observed, wanted))
        if is_made:
            outcome = "done" if done.status_code == HTTP_OK else f"failed ({done.status_code})"
            self.settings.report(f"{name}: {said(wanted, change.private)}: {outcome}")
        return done


def said(wanted: Struct, private: Sequence[str]) -> str:
    """For the terminal, which others may read and keep: what was changed, without what a record holds."""
    fields = msgspec.to_builtins(wanted)
    assert set(private) <= fields.keys(), "a field that is renamed would be shown"
    return msgspec.json.encode({name: value for name, value in fields.items() if name not in private}).decode()


async def decoded(request: Request, kind: type[T]) -> T:
    """Raises BadOption if the body is not what is wanted."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_MAX:
            raise BadOption(f"the request is larger than {BODY_MAX >> 20} MiB")
    try:
        return msgspec.json.decode(bytes(body), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadOption(f"the request is not valid: {error}") from None


async def answered(ask: Callable[[], Any]) -> Response:
    """What the cluster answers, in a thread of its own; or why it does not."""
    try:
        return answer(await to_thread.run_sync(ask))
    except StrandlineError as error:
        return refusal(error)
    except (OSError, Malformed) as error:
        return answer({"problem": f"no answer: {error}", "advice": ""}, 502)
    except Exception as error:
        LOG.exception("a request of the page")
        return answer({"problem": f"a defect of the console: {error!r}", "advice": ""}, 500)


def refusal(error: StrandlineError) -> Response:
    status = 400 if isinstance(error, BadOption) else 409
    return answer({"problem": error.problem, "advice": error.advice}, status)


def not_there() -> Response:
    return answer({"problem": "the console has no such page", "advice": "load it again"}, 404)


def answer(content: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")
