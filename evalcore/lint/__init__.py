"""Checks everything the documents demand of the files; each demand is a named check with its clause."""
