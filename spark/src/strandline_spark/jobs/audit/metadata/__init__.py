"""A node's metadata log, its snapshots and `quorum-state`, and what the log says of brokers.

- files.py: reading what a running node may change meanwhile
- state.py: snapshots, and `quorum-state`
- segments.py: the log itself, and several voters' logs against one another
- registrations.py: markers of clean stops against the registrations in the log
"""
