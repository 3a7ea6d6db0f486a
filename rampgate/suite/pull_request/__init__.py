"""Reads what a run of a suite says of a pull request, for the gate before a merge."""
