"""Runs real services on free ports in temporary folders, for tests, fault runs, benchmarks and the demo.

They leave nothing behind: processes and folders end with close(), or with their owner, however it ends.
"""
