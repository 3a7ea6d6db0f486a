"""Runs the long-lived processes: worker, feed, sweep, with their probes."""
