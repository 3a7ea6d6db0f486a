"""Derives limits of judges from single scores, by the three sources of PF-9 §5.3."""
