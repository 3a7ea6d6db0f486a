"""Exports turns of one vertical as JSON Lines for people who curate them; each page is audited (PF-9 FR-12)."""
