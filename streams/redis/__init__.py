"""Redis: the join's state and the judges' answers."""
