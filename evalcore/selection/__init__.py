"""Which turns of a window are meant: comparisons of their scores and labels."""
