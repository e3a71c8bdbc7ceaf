"""One job, one folder: `job.py` is what a notebook calls, the other files are its parts."""
