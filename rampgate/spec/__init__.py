"""Runs an agent's spec: tests it, keeps baselines of it, and compares them."""
