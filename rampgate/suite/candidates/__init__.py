"""Runs the candidate of a suite: a Python entry point, or a command, each in processes of its own."""
