"""What must be true of all replicas of a cluster together, as rules: rows of replicas in, findings out.

A rule is a function of DataFrames (`schemas.REPLICA_*`) to a DataFrame of findings (`schemas.FINDING`), one file a
subject. None may fire on a healthy cluster under load, whose files are read one after another while they change:

  - high watermarks are read before batches. What was committed then is never changed or cut, so that two reads of it,
    at whatever moments, must agree; what lies above is compared with nothing.
  - epochs and the list of segments are read after the batches: whatever a batch needs was written before it.
  - retention takes from the front only: nothing is expected below the first segment that is left at the end.
  - what can still look wrong for a moment (a read while a follower cuts its log, a segment that a cleaner replaces) is
    another thing a moment later: findings count that a second look finds again (`looks`).
"""
