"""Fresh samples of what tripped: which are wanted, where they come from, and what they say."""
