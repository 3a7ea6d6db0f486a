"""Queries of the state: coverage, conservation, single turns, and the audit of who read them."""
