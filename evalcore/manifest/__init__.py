"""Makes the evaluation manifest from what components and verticals declare."""
