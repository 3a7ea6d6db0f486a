"""Keeps what must not be paid for twice, each value sealed."""
