"""Judges live traces and keeps their scores by agent version (PC5 §5.2, §5.7, FR-11)."""
