"""Holds judges, categories and thresholds as one frozen view, and reads the files it is made of."""
