"""Finds out whether texts that a judge reads can move its score: planted instructions, paired with the same item
without them."""
