"""Tells whether a judge scores the same outputs as it did at its calibration, and where the limit is (PF-9 FR-13)."""
