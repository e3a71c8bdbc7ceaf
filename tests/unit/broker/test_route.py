from strandline.broker.route import BROKER_ROUTES, CONTROLLER_ROUTES
from strandline.wire.api import APIS


def test_clients_are_told_of_exactly_the_apis_that_have_a_route() -> None:
    told = {api.request for api in APIS if api.advertised is not None}
    assert set(BROKER_ROUTES) == told


def test_the_controller_listener_tells_of_exactly_the_apis_that_have_a_route() -> None:
    told = {api.request for api in APIS if api.on_controller}
    assert set(CONTROLLER_ROUTES) == told
