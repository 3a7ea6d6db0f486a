"""What commands on the registry do: rules, the manifest, verticals, golden sets."""
