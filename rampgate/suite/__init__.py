"""The offline pipeline: a suite of cases, run on a candidate and held against a baseline."""
