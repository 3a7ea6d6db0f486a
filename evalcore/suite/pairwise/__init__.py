"""Which of two answers to the same case a judge prefers: its question, and what its answers come to."""
