"""Rows into topics exactly once: tasks write in prepared transactions (KIP-939), and the driver commits them together.

`task` writes, `journal` keeps what was decided, `deciding` commits and aborts, `settling` ends what a driver that died
left open, `starting` checks what brokers must offer. docs/exactly-once.md has the protocol, and why it is right.
"""
