"""Small wrong changes of the source, each with the tests that must fail with it: `python -m tests.mutants`."""
