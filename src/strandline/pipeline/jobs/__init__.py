"""One job, one file: read, transforms, write; what a notebook calls."""
