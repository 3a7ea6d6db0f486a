"""Reads configuration files: YAML to models, each finding with its file, line, field and remedy."""
