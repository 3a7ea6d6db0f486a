"""Reads configuration files: YAML to models, each problem with its file, line, field and remedy."""
