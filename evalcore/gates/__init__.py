"""Decides gates: from judges' answers over a sample to a verdict (PC5 §5.4, §5.5; contracts §3)."""
