"""Real services on free ports in temporary folders, for tests, fault runs, benchmarks and the demo.

Nothing is left behind: processes and folders go with close(), or with the owner's death however it died.
"""
