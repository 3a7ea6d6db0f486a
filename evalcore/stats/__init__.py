"""Statistics that more than one part of the judgement needs. Pure."""
