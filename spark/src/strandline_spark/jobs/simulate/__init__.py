"""Campaigns of the simulator: many seeds in blocks, each block a file that is there whole or not at all.

Whoever runs the blocks, Spark's tasks or threads of one machine, calls the same function (`block.write_block`).
"""
