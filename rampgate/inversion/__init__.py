"""Judges compared with users: what is read of Opik, and how the answer is shown."""
