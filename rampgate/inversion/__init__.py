"""Judges held against users: what is read of Opik, and how the answer is shown."""
