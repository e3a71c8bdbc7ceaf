"""A client in the simulator: a machine of its own on the network, which carries out what the client yields."""

from typing import Any

from strandline.base.effects import Answered, Event, Failed, Send
from strandline.base.ids import NOBODY
from strandline.base.value import Value
from strandline.sim.clients.client import Client, Life, Request
from strandline.sim.simulation import World
from strandline.sim.world.connection import Station


class ClientToken(Value, frozen=True):
    """Counts the requests of the client."""

    asked: int


class Actor(Station):
    def __init__(self, world: World, client: Client) -> None:
        super().__init__(client.name, world.network)
        self.world = world
        self.client = client
        if world.options.authorizer:
            self.principal = f"User:{client.name}"
        self.is_running = True
        self.asked = 0
        self.answers: dict[int, Any] = {}
        self.is_list = False
        self.life_of: Life = client.live()
        world.time.later(0, lambda: self.go(None))

    def go(self, answer: Any) -> None:
        with self.world.holding(lambda: f"{self.name} goes on with {str(answer)[:300]}"):
            try:
                wish = self.life_of.send(answer)
            except StopIteration:
                self.client.is_done = True
                return
        if isinstance(wish, int):
            self.world.time.later(wish, lambda: self.go(None))
            return
        self.is_list = isinstance(wish, list)
        requests: list[Request] = wish if isinstance(wish, list) else [wish]
        self.answers = {}
        silent = []
        for request in requests:
            self.asked += 1
            self.answers[self.asked] = ...
            token = ClientToken(self.asked)
            effect = Send(request.to, "", request.message, request.version, request.timeout_ms, token, NOBODY)
            self.network.send(self, effect)
            if getattr(request.message, "acks", -1) == 0:
                silent.append(self.asked)
        for asked in silent:  # nobody answers acks=0
            self.world.time.later(1, lambda asked=asked: self.answer(asked, None))  # type: ignore[misc]  # the default's type is not inferred

    def event(self, event: Event) -> None:
        assert isinstance(event, (Answered, Failed)), event
        assert isinstance(event.token, ClientToken), event
        self.answer(event.token.asked, event.message if isinstance(event, Answered) else None)

    def answer(self, asked: int, message: Any) -> None:
        self.answers[asked] = message
        answers = list(self.answers.values())
        if ... not in answers:
            self.go(answers if self.is_list else answers[0])
