"""The sweep: a scheduled batch over the thumbs table and Opik's traces (PF-9 FR-6, V1)."""
