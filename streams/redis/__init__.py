"""Redis: the join's state, leases, and the judges' answers."""
