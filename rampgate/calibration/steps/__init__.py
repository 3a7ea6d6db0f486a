"""The steps of a calibration round: what each reads, and what it leaves (PF-9 §5.3)."""
