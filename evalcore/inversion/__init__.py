"""Does a judge score against people: the correlation of its scores with theirs (PF-9 FR-10). Pure."""
