"""Serves, syncs and rolls back the registry's files."""
