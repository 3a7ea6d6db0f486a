"""Opik's REST API: scores, traces, datasets and automation rules."""
