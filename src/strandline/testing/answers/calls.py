"""Requests that a test looks at, and answers that it asks for."""

from strandline.testing.answers.captured import Request
from strandline.testing.answers.kafka_relays import KafkaRelays
from strandline.testing.answers.rules import Rule, known_api, known_error
from strandline.testing.relayed_cluster import RelayedCluster

HEARTBEATS = ("Heartbeat", "ConsumerGroupHeartbeat")


class AnswerCalls:
    """Clients only: what nodes ask one another is not captured, and not answered here.

    For all rules: `times`: how many answers, None for all until the rule ends; `client_id` and `node`: whose requests,
    and to which node; `performed`: whether the node gets the request and acts on it."""

    nodes: RelayedCluster

    def listen(self) -> None:
        """From now on."""
        self.rules: list[Rule] = []
        self.heard_before = self.relays.captured.count

    @property
    def relays(self) -> KafkaRelays:
        assert isinstance(self.nodes.wires, KafkaRelays)
        return self.nodes.wires

    def requests(
        self, api: str | None = None, *, client_id: str | None = None, node: int | None = None
    ) -> list[Request]:
        """Those that clients sent since the beginning of the test, oldest first; at most 10,000 are kept."""
        name = None if api is None else known_api(api)
        return [
            request
            for request in self.relays.captured.since(self.heard_before)
            if name in (None, request.api) and client_id in (None, request.client_id) and node in (None, request.node)
        ]

    def forget_requests(self) -> None:
        self.heard_before = self.relays.captured.count

    def fail_next(
        self,
        api: str,
        error: str | int,
        *,
        times: int | None = 1,
        client_id: str | None = None,
        node: int | None = None,
        performed: bool = False,
    ) -> Rule:
        """The next answers have this error, such as "NOT_LEADER_OR_FOLLOWER"."""
        code = known_error(error)
        return self.add(Rule(api, error=code, times=times, client_id=client_id, node=node, performed=performed))

    def delay_next(
        self, api: str, delay_s: float, *, times: int | None = 1, client_id: str | None = None, node: int | None = None
    ) -> Rule:
        """The node acts at once, and its answers come so much later, with all that follow on their connections."""
        return self.add(Rule(api, delay_s=delay_s, times=times, client_id=client_id, node=node, performed=True))

    def lose_next(
        self,
        api: str,
        *,
        times: int | None = 1,
        client_id: str | None = None,
        node: int | None = None,
        performed: bool = True,
    ) -> Rule:
        """The next answers never arrive, nor does anything that follows on their connections."""
        return self.add(Rule(api, is_lost=True, times=times, client_id=client_id, node=node, performed=performed))

    def close_next(
        self,
        api: str,
        *,
        times: int | None = 1,
        client_id: str | None = None,
        node: int | None = None,
        performed: bool = True,
    ) -> Rule:
        """Instead of the next answers, their connections end."""
        return self.add(Rule(api, closes=True, times=times, client_id=client_id, node=node, performed=performed))

    def hold_heartbeats(self, client_id: str) -> list[Rule]:
        """No heartbeat of this client arrives any more, so its sessions in groups expire; until `end_rules`."""
        return [self.lose_next(api, times=None, client_id=client_id, performed=False) for api in HEARTBEATS]

    def add(self, rule: Rule) -> Rule:
        self.rules.append(rule)
        return self.relays.rules.add(rule)

    def end_rules(self) -> None:
        """Every answer is the node's again."""
        for rule in self.rules:
            rule.end()
        self.rules = []
