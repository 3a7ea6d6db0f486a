"""Takes the spans that a candidate sends while it answers."""
