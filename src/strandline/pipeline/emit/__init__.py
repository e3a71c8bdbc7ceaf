"""Table or query to topic, exactly once, without transactions. `lane.py` has the idea; `jobs/emit.py` is the job."""
