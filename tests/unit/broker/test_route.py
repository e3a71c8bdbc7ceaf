from strandline.broker.route import BROKER_ROUTES, CONTROLLER_ROUTES
from strandline.wire.api import APIS


def test_clients_see_exactly_the_apis_that_have_a_route_without_our_own() -> None:
    reported = {api.request for api in APIS if api.advertised is not None}
    own = {api.request for api in APIS if api.is_own}
    assert own
    assert not own & reported
    assert set(BROKER_ROUTES) == reported | own


def test_the_controller_listener_reports_exactly_the_apis_that_have_a_route() -> None:
    reported = {api.request for api in APIS if api.on_controller}
    assert set(CONTROLLER_ROUTES) == reported
