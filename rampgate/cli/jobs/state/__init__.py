"""What commands on a running installation do: turns, traces, dead letters, partitions."""
