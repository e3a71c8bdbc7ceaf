"""What every layer shares: ids, time, effects, ports, error codes. Imports nothing of ours."""

if not __debug__:
    raise SystemExit("refusing to run under -O: assertions are part of the program")

VERSION = "0.1.0"
