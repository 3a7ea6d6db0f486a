"""One judge: its question about an item, and the score it answers."""
