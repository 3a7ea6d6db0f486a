"""Judges' limits: derived from scores, written into a vertical's rule files, due again (PF-9 FR-3, FR-4, §5.3)."""
