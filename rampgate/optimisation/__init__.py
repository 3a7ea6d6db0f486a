"""Runs the optimisation loop: reads an eval run, asks the meta-LLM, measures its forks, holds drafts (PF-9 FR-9)."""
