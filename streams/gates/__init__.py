"""Answers ramp-step requests: jobs, samples, candidates, verdicts."""
