"""Answers ramp-step requests: records, samples, candidates, verdicts."""
