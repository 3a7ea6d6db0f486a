"""Answers questions about the state: coverage, conservation, single turns."""
