"""What the controller asked a driver for: one type for each kind of question, which comes back with its answer."""

from strandline.base.ids import BrokerEpoch, NodeId
from strandline.base.value import Value


class ControllerToken(Value, frozen=True):
    """Whatever bears one of these is the controller's."""


class ProbeSent(ControllerToken, frozen=True):
    broker: NodeId
    epoch: BrokerEpoch
    attempt: int


class InquirySent(ControllerToken, frozen=True):
    broker: NodeId
    serial: int
