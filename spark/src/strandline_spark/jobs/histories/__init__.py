"""Recorded histories of any size, judged key by key by the checks of `history`, wherever Spark has the key."""
