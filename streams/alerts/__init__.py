"""Tells operators and PC6 of failed verdicts and of regressions."""
