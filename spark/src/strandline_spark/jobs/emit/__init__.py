"""Table or query to topic, exactly once, without transactions. `lane.py` has the idea; `job.py` is the job."""
