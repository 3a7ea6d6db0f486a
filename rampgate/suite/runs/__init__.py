"""One run of a suite: its plan, its work, what it is compared with, and where it is kept."""
