"""Probes, metrics and answers over HTTP, in the loop of the process they tell about (contracts §4)."""
