"""One run of a suite: its plan, its work, what it is held against, and where it is kept."""
