"""The offline pipeline: a suite of cases, run on a candidate and compared with a baseline."""
