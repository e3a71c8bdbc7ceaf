"""What commands print with --json: a type for each, from which its JSON Schema and docs/json.md are made.

Tests hold everything that commands print with --json against these types. A field that is not here is an error there,
and so is one that is missing.
"""
