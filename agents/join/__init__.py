"""Joins users' signals with traces: turns, merges, counts, and the step that brings a batch to its end."""
