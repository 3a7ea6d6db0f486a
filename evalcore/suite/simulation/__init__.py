"""Comparisons of a suite's candidate with itself, drawn from what its stored runs say of each case."""
