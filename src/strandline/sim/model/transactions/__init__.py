"""The transaction coordinator of one transactional id, explored exhaustively: its real code, and the real rules of
partition logs for producers and markers."""

from strandline.sim.model.transactions.exploration import explore
from strandline.sim.model.transactions.setup import Setup, ladder

__all__ = ["Setup", "explore", "ladder"]
