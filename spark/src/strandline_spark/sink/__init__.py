"""Rows into topics: Arrow columns become record batches without an object per record, and a producer sends them.

`writer` has what Spark calls; everything else is without Spark. The loops over rows are compiled by numba (`kernel`);
`twin` does the same in Python, from the project's own record writer: the oracle of the tests, and what runs without
numba.
"""
