"""Opik over its REST API: scores, traces, datasets and automation rules."""
