"""A calibration round of one vertical, from the draw to new limits (PF-9 §5.3, Phase 3)."""
