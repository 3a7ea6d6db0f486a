"""The cluster's API: a port, its adapter over lightkube, the twin that reads YAML, and reading a whole workflow."""
