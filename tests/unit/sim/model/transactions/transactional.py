"""Setups of the model of transactions that tests explore: small enough for a second or less."""

from strandline.sim.model.transactions import Setup

NEW = Setup(transactions=1)
CALM = Setup(starts=1, failovers=0, timeouts=0)
OLD = Setup(version=1, starts=1, timeouts=0)
TWO_PHASE = Setup(two_phase=True, transactions=1, failovers=0, timeouts=0)
